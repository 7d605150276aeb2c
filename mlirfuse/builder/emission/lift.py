"""Turns a rule on elements into a function on tensors: one `linalg.generic` per call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, overload

from mlir import ir

from mlirfuse.builder.array_types import BinaryFunction, UnaryFunction
from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.emission.emit import broadcast_access, pointwise
from mlirfuse.builder.emission.operands import (
    Operand,
    Resolved,
    broadcast,
    check_computes,
    check_fits,
    common_dtype,
    element,
    resolve,
    scalars_only,
    state_of,
)
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import ScalarBase, TensorBase
from mlirfuse.errors import DTypeError
from mlirfuse.support.dtypes import DType, bool_, float32, float64

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor

ElementRule = Callable[..., ir.Value]


@dataclass(frozen=True)
class Typing:
    """The dtypes that an operation accepts, computes in and returns.

    Attributes:
        kinds: accepted kinds of dtype.
        as_float: integers and bools are converted to float32 first.
        wide: float16 and bfloat16 are computed in float32 and rounded once, as NumPy does for float16.
        to_bool: the result is bool; otherwise it is the common dtype of the operands.
    """

    kinds: tuple[str, ...]
    as_float: bool = False
    wide: bool = False
    to_bool: bool = False


ARITHMETIC = Typing(("int", "float"))
NUMERIC_WIDE = Typing(("int", "float"), wide=True)
FLOATING = Typing(("bool", "int", "float"), as_float=True, wide=True)
COMPARISON = Typing(("bool", "int", "float"), to_bool=True)
PREDICATE = Typing(("int", "float"), to_bool=True)
LOGICAL = Typing(("bool",))
BITWISE = Typing(("bool", "int"))
INTEGER = Typing(("int",))

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Every lifted function by its array-API name; NumPy ufuncs of the same name are redirected here."""


class Lift(Protocol):
    """The decorator that `lift` makes."""

    @overload
    def __call__(self, rule: Callable[[ir.Value], ir.Value] | _RuleOfDtype) -> UnaryFunction: ...

    @overload
    def __call__(self, rule: Callable[[ir.Value, ir.Value], ir.Value]) -> BinaryFunction: ...


class _RuleOfDtype(Protocol):
    def __call__(self, x: ir.Value, *, dtype: DType) -> ir.Value: ...


def lift(typing: Typing) -> Lift:
    """Decorator: turns `rule(*elements)`, which builds one element from elements of one type, into a tensor function.

    A rule may have a keyword parameter `dtype`, the result's dtype, which `elements` may exceed in precision. The
    function broadcasts and promotes by the rules of the array API. It raises `ShapeError` for shapes that do not
    broadcast and `DTypeError` for dtypes that the operation does not accept.
    """

    def decorate(rule: Any) -> Any:
        name = rule.__name__
        arity = rule.__code__.co_argcount

        def function(*operands: Operand) -> Tensor:
            if len(operands) != arity:
                raise TypeError(f"{name}() takes {arity} positional arguments but {len(operands)} were given")
            return apply(name, rule, typing, operands)

        function.__name__, function.__qualname__ = name, name
        function.__doc__, function.__module__ = rule.__doc__, rule.__module__
        FUNCTIONS[name] = function
        return function

    return decorate


def apply(name: str, rule: ElementRule, typing: Typing, operands: tuple[Operand, ...]) -> Tensor:
    """Applies an element rule to operands after promotion to their common dtype; `name` is used in messages."""
    resolved = [resolve(operand, name) for operand in operands]
    dtype = common_dtype(resolved, name)
    if dtype.kind not in typing.kinds:
        raise at_user_line(
            DTypeError(
                f"{name} does not take {dtype.name}",
                hint=f"it takes {' and '.join(typing.kinds)} dtypes; use .astype(...)",
            )
        )
    if typing.as_float and dtype.kind != "float":
        dtype = float64 if scalars_only(resolved) else float32
    check_computes(dtype, name)
    for operand in resolved:
        check_fits(operand, dtype, name)
    compute = float32 if typing.wide and dtype.kind == "float" and dtype.bits == 16 else dtype
    result = bool_ if typing.to_bool else dtype
    of_elements = partial(rule, dtype=result) if rule.__code__.co_kwonlyargcount else rule

    def element_rule(*elements: ir.Value) -> ir.Value:
        value = of_elements(*elements)
        return value if typing.to_bool else convert(value, compute, dtype)

    return build(name, resolved, [dtype] * len(resolved), compute, result, element_rule)


def build(
    name: str,
    resolved: list[Resolved],
    dtypes: list[DType],
    compute: DType,
    result: DType,
    rule: Callable[..., ir.Value],
) -> Any:
    """Emits `rule` over operands that are rounded to `dtypes` and converted to `compute` (bools stay bools).

    A tensor that is passed twice becomes one input. The result is a scalar if all operands are scalars.
    """
    state = state_of(resolved, name)
    inputs: list[TensorBase] = []
    for operand in resolved:
        if isinstance(operand, TensorBase) and not any(operand is t for t in inputs):
            inputs.append(operand)

    def body(*elements: ir.Value) -> ir.Value:
        arguments = []
        for operand, dtype in zip(resolved, dtypes, strict=True):
            wanted = compute if dtype.kind != "bool" else dtype
            if isinstance(operand, TensorBase):
                index = next(i for i, t in enumerate(inputs) if t is operand)
                rounded = convert(elements[index], operand.dtype, dtype)
                arguments.append(convert(rounded, dtype, wanted))
            else:
                arguments.append(element(operand, dtype, wanted))
        return rule(*arguments)

    if not inputs:
        return scalar_result(resolved, result, body)
    shape = broadcast([t.shape for t in inputs], name)
    return pointwise(state, [(t, broadcast_access(t.shape, shape)) for t in inputs], shape, result, body)


def scalar_result(resolved: list[Resolved], dtype: DType, emit: Callable[[], ir.Value]) -> ScalarBase:
    """The scalar result of an expression of scalars, emitted by `emit` where it is used."""
    scalars = [o for o in resolved if isinstance(o, ScalarBase)]
    symbols = tuple(dict.fromkeys(symbol for scalar in scalars for symbol in scalar.symbols))
    return type(scalars[0])(scalars[0].state, dtype, emit, symbols=symbols)

"""Operands of elementwise operations (tensors, run-time scalars, Python numbers, NumPy scalars), and the common
dtype.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import ml_dtypes
import numpy as np
from mlir import ir

from mlirfuse.builder.emission.body import constant, convert
from mlirfuse.builder.extents import Dim, Shape, show, unify
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import LEAK_HINT, ScalarBase, TensorBase, TraceState
from mlirfuse.errors import DTypeError, ShapeError, TraceError
from mlirfuse.support import dtypes
from mlirfuse.support.dtypes import DType

Number = bool | int | float
Operand = TensorBase | ScalarBase | Number | np.generic

_DEFAULT = {"bool": dtypes.bool_, "int": dtypes.int64, "float": dtypes.float32}
_ORDER = ("bool", "int", "float")


class Constant:
    """A number known while tracing; `dtype` is None for a Python number, which adopts the tensor operands' dtype."""

    __slots__ = ("dtype", "kind", "number")

    def __init__(self, number: Number, kind: str, dtype: DType | None = None):
        self.number = number
        self.kind = kind
        self.dtype = dtype


Resolved = TensorBase | ScalarBase | Constant


def resolve(operand: object, function: str) -> Resolved:
    """The operand as a tensor, a scalar or a `Constant`; raises `TraceError` for anything else."""
    if isinstance(operand, TensorBase | ScalarBase):
        return operand
    if isinstance(operand, Dim):
        return operand.scalar()
    if isinstance(operand, np.ndarray) and operand.ndim == 0:
        operand = operand[()]
    if isinstance(operand, np.generic | ml_dtypes.bfloat16 | ml_dtypes.float8_e4m3fn | ml_dtypes.float8_e5m2):
        dtype = dtype_argument(operand.dtype)
        number = operand.astype(np.float64).item() if dtype.kind == "float" else operand.item()
        return Constant(number, dtype.kind, dtype)
    if isinstance(operand, bool):
        return Constant(operand, "bool")
    if isinstance(operand, numbers.Integral):
        return Constant(int(operand), "int")
    if isinstance(operand, float):
        return Constant(operand, "float")
    if hasattr(operand, "shape") and hasattr(operand, "dtype"):
        raise at_user_line(
            TraceError(
                f"{function} got an array of type {type(operand).__name__} with shape {tuple(operand.shape)}",
                hint="arrays are not captured: pass it to the function that mf.fuse compiles, as an argument",
            )
        )
    raise at_user_line(
        TraceError(
            f"{function} got {operand!r} of type {type(operand).__name__}",
            hint="operands are tensors, run-time scalars, Python numbers and NumPy scalars",
        )
    )


def state_of(operands: Sequence[Resolved], function: str) -> TraceState:
    """The trace that the operands belong to; raises `TraceError` if there is none, or more than one."""
    states = {id(o.state): o.state for o in operands if not isinstance(o, Constant)}
    if len(states) == 1:
        return next(iter(states.values()))
    if not states:
        raise at_user_line(
            TraceError(f"{function} got only Python numbers", hint="compute it in Python, or pass a tensor")
        )
    raise at_user_line(TraceError(f"{function} mixes tensors of different traces", hint=LEAK_HINT))


def common_dtype(operands: Sequence[Resolved], function: str) -> DType:
    """The dtype that the operands are promoted to.

    Tensors and NumPy scalars are promoted with each other. Python numbers and run-time scalars then adopt the result,
    unless a number is of a higher kind: a float with an int tensor gives float32.
    """
    strong = [d for o in operands if (d := _strong_dtype(o)) is not None]
    weak = [_weak_kind(o) for o in operands if _strong_dtype(o) is None]
    kind = max(weak, key=_ORDER.index, default="bool")
    if not strong:
        return dtypes.float64 if kind == "float" and scalars_only(operands) else _DEFAULT[kind]
    result = strong[0]
    for dtype in strong[1:]:
        result = promote(result, dtype, function)
    if weak and _ORDER.index(kind) > _ORDER.index(result.kind):
        return promote(result, _DEFAULT[kind], function)
    if "bool" in weak and result.kind != "bool":
        raise at_user_line(
            DTypeError(f"{function}: cannot mix a Python bool with {result.name}", hint="write 0 or 1 instead")
        )
    return result


def scalars_only(operands: Sequence[Resolved]) -> bool:
    """Whether the operands are run-time scalars and numbers, so that the result is a scalar, kept in float64."""
    return not any(isinstance(o, TensorBase) for o in operands) and any(isinstance(o, ScalarBase) for o in operands)


def promote(a: DType, b: DType, function: str) -> DType:
    """`dtypes.promote` with the user's line in the error."""
    try:
        return dtypes.promote(a, b)
    except DTypeError as error:
        error.message = f"{function}: {error.message}"
        raise at_user_line(error) from None


def dtype_argument(dtype: object) -> DType:
    """`dtypes.dtype_of` with the user's line in the error."""
    try:
        return dtypes.dtype_of(dtype)
    except DTypeError as error:
        raise at_user_line(error) from None


def broadcast(shapes: Sequence[Shape], function: str) -> Shape:
    """The shape that all broadcast to by NumPy's rule; raises `ShapeError`."""
    rank = max(map(len, shapes), default=0)
    result: list = [1] * rank
    for shape in shapes:
        for d, extent in enumerate(shape, rank - len(shape)):
            unified = unify(result[d], extent)
            if unified is None:
                raise at_user_line(
                    ShapeError(
                        f"{function}: shapes {' and '.join(map(show, shapes))} do not broadcast",
                        hint=f"dimension {d - rank}: {result[d]} and {extent} must be equal, or one of them 1",
                    )
                )
            result[d] = unified
    return tuple(result)


def element(operand: ScalarBase | Constant, dtype: DType, compute: DType) -> ir.Value:
    """The number as a value of type `compute`, first rounded to `dtype`. Builds at the current insertion point."""
    if isinstance(operand, ScalarBase):
        return convert(convert(operand.emit(), operand.dtype, dtype), dtype, compute)
    return constant(compute.mlir(), _rounded(operand.number, dtype))


def check_computes(dtype: DType, function: str) -> None:
    """Raises `DTypeError` for a dtype without arithmetic."""
    if dtype.is_float8:
        raise at_user_line(
            DTypeError(
                f"{function} does not compute in {dtype.name}",
                hint="cast it with .astype(mf.float32); float8 is for storage and for matmul",
            )
        )


MOST_DIGITS = 10**40
"""Largest integer that messages print in full."""


def check_fits(operand: Resolved, dtype: DType, function: str) -> None:
    """Raises `DTypeError` for a Python number that the integer `dtype`, or every floating-point type, cannot hold."""
    if not isinstance(operand, Constant) or dtype.kind not in ("int", "float"):
        return
    if operand.kind != "int" and (operand.kind != "float" or dtype.kind == "float"):
        return
    limit = np.iinfo(dtype.numpy).max if dtype.kind == "int" else int(np.finfo(np.float64).max)
    if not -limit - 1 <= operand.number <= limit:
        is_short = isinstance(operand.number, float) or abs(operand.number) < MOST_DIGITS
        number = str(operand.number) if is_short else "an integer of so many digits"
        raise at_user_line(
            DTypeError(f"{function}: {number} does not fit {dtype.name}", hint="cast the tensor to a wider type")
        )


def _rounded(number: Number, dtype: DType) -> Number:
    if dtype.kind == "bool":
        return bool(number)
    if dtype.kind != "float":
        return number
    with np.errstate(over="ignore"):
        return float(dtypes.rounded(np.asarray(number, np.float64), dtype.numpy))


def _strong_dtype(operand: Resolved) -> DType | None:
    return operand.dtype if isinstance(operand, TensorBase | Constant) else None


def _weak_kind(operand: Resolved) -> str:
    return operand.kind if isinstance(operand, Constant) else operand.dtype.kind

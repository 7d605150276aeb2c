"""The table of operations: how each is written, and what it means on bounded values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.fuzzing.bounds import Bounded, cast
from tests.fuzzing.ops import convolutions, einsums, elementwise, reductions
from tests.fuzzing.ops.contraction import matmul
from tests.fuzzing.types import DTYPES, Refused

Text = Callable[[Sequence[str], dict[str, Any]], str]


@dataclass(frozen=True)
class Operation:
    """An operation of the language.

    Attributes:
        texts: the ways of writing it.
        rule: its meaning.
    """

    texts: Sequence[Text]
    rule: Callable[..., Bounded]

    def text(self, args: Sequence[str], params: dict[str, Any], style: int) -> str:
        return self.texts[style % len(self.texts)](args, params)


def shown(value: Any) -> str:
    """A parameter in source: dtypes are mlirfuse's."""
    if isinstance(value, str):
        return (f"mf.{value}" + "_" * (value == "bool")) if value in DTYPES else repr(value)
    return repr(value)


def call(name: str) -> Text:
    def text(args: Sequence[str], params: dict[str, Any]) -> str:
        given = [*args, *(f"{key}={shown(value)}" for key, value in params.items())]
        return f"mf.{name}({', '.join(given)})"

    return text


def method(name: str) -> Text:
    def text(args: Sequence[str], params: dict[str, Any]) -> str:
        given = [*args[1:], *(f"{key}={shown(value)}" for key, value in params.items())]
        return f"{args[0]}.{name}({', '.join(given)})"

    return text


def infix(operator: str) -> Text:
    return lambda args, params: f"{args[0]} {operator} {args[1]}"


def _prefix(operator: str) -> Text:
    return lambda args, params: f"{operator}{args[0]}"


def _view(function: Callable[..., np.ndarray]) -> Callable[..., Bounded]:
    def apply(x: Bounded, **params: Any) -> Bounded:
        if x.weak is not None:
            raise Refused("a view of a number")
        value, error = function(x.value, **params), function(x.error, **params)
        slip = None if x.slip is None else function(x.slip, **params)
        return replace(x, value=np.ascontiguousarray(value).reshape(value.shape), error=error, slip=slip)

    return apply


def _squeeze(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.squeeze(x, axis)


def _cast(x: Bounded, dtype: str) -> Bounded:
    return cast(x, dtype)


def _positional(name: str, key: str) -> Text:
    """A call with a parameter in order, as `mf.reshape(x, (2, 3))`."""
    return lambda args, params: f"mf.{name}({args[0]}, {shown(params[key])})"


def _of_list(name: str) -> Text:
    """A call with its arrays in a list."""
    return lambda args, params: f"mf.{name}([{', '.join(args)}], axis={params['axis']})"


def _equation_first(args: Sequence[str], params: dict[str, Any]) -> str:
    rest = {key: value for key, value in params.items() if key != "equation"}
    return call("einsum")([repr(params["equation"]), *args], rest)


def _transposed(args: Sequence[str], params: dict[str, Any]) -> str:
    return f"{args[0]}.T"


def _added(args: Sequence[str], params: dict[str, Any]) -> str:
    """`x[:, None]`; dimensions behind the last are written with an ellipsis before."""
    axis = params["axis"]
    return f"{args[0]}[{', '.join([':'] * axis + ['None'])}]" if axis >= 0 else f"mf.expand_dims({args[0]}, {axis})"


def _diagonal(x: np.ndarray, offset: int = 0, axis1: int = -2, axis2: int = -1) -> np.ndarray:
    return np.diagonal(x, offset, axis1, axis2)


def _indexed(args: Sequence[str], params: dict[str, Any]) -> str:
    """`x[1:3, ::-1, 0]`; a slice of the key is a tuple of its bounds and its step, and ends in `...` if it is short."""
    texts = [
        ":".join("" if bound is None else str(bound) for bound in entry) if isinstance(entry, tuple) else str(entry)
        for entry in params["key"]
    ]
    return f"{args[0]}[{', '.join(texts)}]"


def _index(entry: Any) -> Any:
    return slice(*entry) if isinstance(entry, tuple) else entry


def _clip(args: Sequence[str], params: dict[str, Any]) -> str:
    names = [n for n, given in (("min", params["low"]), ("max", params["high"])) if given]
    return f"mf.clip({args[0]}, {', '.join(f'{n}={a}' for n, a in zip(names, args[1:], strict=True))})"


def _clip_rule(x: Bounded, *limits: Bounded, low: bool, high: bool) -> Bounded:
    first = limits[0] if low else None
    return elementwise.clip(x, first, limits[-1] if high else None)


def _like(number: float) -> Callable[..., Bounded]:
    def rule(x: Bounded, dtype: str | None = None) -> Bounded:
        from tests.fuzzing.program import Number

        return elementwise.full_like(x, Number(int(number)).bounded(constant=True), dtype)

    return rule


def _reshape_method(args: Sequence[str], params: dict[str, Any]) -> str:
    return (
        f"{args[0]}.reshape({', '.join(map(shown, params['shape']))})"
        if params["shape"]
        else f"mf.reshape({args[0]}, ())"
    )


def _binary() -> Mapping[str, Operation]:
    table = {
        "add": ("+", elementwise.add),
        "subtract": ("-", elementwise.subtract),
        "multiply": ("*", elementwise.multiply),
        "divide": ("/", elementwise.divide),
        "floor_divide": ("//", elementwise.floor_divide),
        "remainder": ("%", elementwise.remainder),
        "pow": ("**", elementwise.power),
        "equal": ("==", elementwise.COMPARISONS["equal"]),
        "not_equal": ("!=", elementwise.COMPARISONS["not_equal"]),
        "less": ("<", elementwise.COMPARISONS["less"]),
        "less_equal": ("<=", elementwise.COMPARISONS["less_equal"]),
        "greater": (">", elementwise.COMPARISONS["greater"]),
        "greater_equal": (">=", elementwise.COMPARISONS["greater_equal"]),
        "bitwise_and": ("&", elementwise.BITWISE["bitwise_and"]),
        "bitwise_or": ("|", elementwise.BITWISE["bitwise_or"]),
        "bitwise_xor": ("^", elementwise.BITWISE["bitwise_xor"]),
        "bitwise_left_shift": ("<<", elementwise.SHIFTS["bitwise_left_shift"]),
        "bitwise_right_shift": (">>", elementwise.SHIFTS["bitwise_right_shift"]),
    }
    found = {name: Operation((infix(sign), call(name)), rule) for name, (sign, rule) in table.items()}
    for name in ("maximum", "minimum"):
        found[name] = Operation((call(name),), getattr(elementwise, name))
    for name in ("logical_and", "logical_or", "logical_xor"):
        found[name] = Operation((call(name),), elementwise.LOGIC[name])
    return found


def _unary() -> Mapping[str, Operation]:
    plain = {**elementwise.UNARY_MATH, **elementwise.STEPS, **elementwise.PREDICATES}
    plain |= {"reciprocal": elementwise.reciprocal, "square": elementwise.square, "sign": elementwise.sign}
    plain["logical_not"] = elementwise.LOGIC["logical_not"]
    found = {name: Operation((call(name),), rule) for name, rule in plain.items()}
    found["negative"] = Operation((_prefix("-"), call("negative")), elementwise.negative)
    found["abs"] = Operation((call("abs"), lambda args, params: f"abs({args[0]})"), elementwise.absolute)
    found["bitwise_invert"] = Operation((_prefix("~"), call("bitwise_invert")), elementwise.BITWISE["bitwise_invert"])
    return found


REDUCTIONS = ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all")
BINARY, UNARY = _binary(), _unary()
VIEWS: Mapping[str, Operation] = {
    "reshape": Operation(
        (_positional("reshape", "shape"), _reshape_method), _view(lambda x, shape: np.reshape(x, shape))
    ),
    "permute_dims": Operation(
        (_positional("permute_dims", "axes"), lambda args, params: f"{args[0]}.transpose({shown(params['axes'])})"),
        _view(lambda x, axes: np.transpose(x, axes)),
    ),
    "matrix_transpose": Operation(
        (call("matrix_transpose"), lambda args, params: f"{args[0]}.mT"), _view(lambda x: np.swapaxes(x, -1, -2))
    ),
    "transposed": Operation((_transposed,), _view(lambda x: x.T)),
    "expand_dims": Operation(
        (_positional("expand_dims", "axis"), _added), _view(lambda x, axis: np.expand_dims(x, axis))
    ),
    "squeeze": Operation((_positional("squeeze", "axis"), method("squeeze")), _view(_squeeze)),
    "broadcast_to": Operation((_positional("broadcast_to", "shape"),), _view(np.broadcast_to)),
    "flip": Operation((_positional("flip", "axis"),), _view(lambda x, axis: np.flip(x, axis))),
    "diagonal": Operation((call("diagonal"),), _view(_diagonal)),
    "index": Operation((_indexed,), _view(lambda x, key: x[(*(_index(entry) for entry in key), ...)])),
}
OPERATIONS: Mapping[str, Operation] = {
    **BINARY,
    **UNARY,
    **VIEWS,
    **{name: Operation((call(name), method(name)), getattr(reductions, f"{name}_of")) for name in REDUCTIONS},
    "astype": Operation(
        (lambda args, params: f"{args[0]}.astype({shown(params['dtype'])})", _positional("astype", "dtype")), _cast
    ),
    "where": Operation((call("where"),), elementwise.where),
    "clip": Operation((_clip,), _clip_rule),
    "concat": Operation((_of_list("concat"),), elementwise.joined(np.concatenate)),
    "stack": Operation((_of_list("stack"),), elementwise.joined(np.stack)),
    "full_like": Operation((call("full_like"),), elementwise.full_like),
    "zeros_like": Operation((call("zeros_like"),), _like(0)),
    "ones_like": Operation((call("ones_like"),), _like(1)),
    "matmul": Operation(
        (call("matmul"), lambda args, params: infix("@")(args, params) if not params else call("matmul")(args, params)),
        matmul,
    ),
    "einsum": Operation((_equation_first,), einsums.einsum),
    "tensordot": Operation((call("tensordot"),), einsums.tensordot),
    "vecdot": Operation((call("vecdot"),), einsums.vecdot),
    "outer": Operation((call("outer"),), einsums.outer),
    "trace": Operation((call("trace"),), einsums.trace),
    **{f"conv{n}d": Operation((call(f"conv{n}d"),), convolutions.conv) for n in (1, 2)},
    **{f"conv{n}d_wgrad": Operation((call(f"conv{n}d_wgrad"),), convolutions.conv_wgrad) for n in (1, 2)},
    **{f"conv{n}d_dgrad": Operation((call(f"conv{n}d_dgrad"),), convolutions.conv_dgrad) for n in (1, 2)},
}

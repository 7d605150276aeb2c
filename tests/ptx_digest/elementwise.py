"""Kernels without reductions or products: functions of elements, casts, and operands of other layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlirfuse as mf
from tests.ptx_digest.cases import FLOAT8_KINDS, Case, Row, sample

FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = ("int8", "int16", "int32", "int64", *FLOATS)
DTYPES = ("bool", *NUMBERS, "float8_e4m3fn", "float8_e5m2")
GROUPS = {
    "ints": ("int8", "int16", "int32", "int64", "bool"),
    "floats": FLOATS,
    "float8": ("float8_e4m3fn", "float8_e5m2"),
}
"""Results of one kernel that casts."""

LAYOUTS: dict[str, tuple[Any, ...] | None] = {
    "contiguous": None,
    "transposed": (1, None),
    "slice": (None, 1),
    "steps": (None, None),
    "reversed": ("negative", "negative"),
    "repeated": (0, 1),
    "column": (None, 0),
}
"""Strides of a matrix."""


def exponentials(x):
    return mf.exp(x), mf.exp2(x), mf.expm1(x), mf.sigmoid(x), mf.tanh(x)


def logarithms(x):
    return mf.log(x), mf.log2(x), mf.log1p(x), mf.sqrt(x), mf.rsqrt(x)


def waves(x):
    return mf.sin(x), mf.cos(x), mf.erf(x)


def roundings(x):
    return mf.floor(x), mf.ceil(x), mf.round(x), mf.trunc(x), mf.sign(x)


def quotients(x, y):
    return x / y, mf.floor_divide(x, y), mf.remainder(x, y), mf.reciprocal(x)


def powers(x, y):
    return mf.pow(x, y), x**3, mf.square(x)


def choices(x, y):
    return mf.where((x > y) & mf.isfinite(x), x, -y), mf.clip(x, -1, 1), mf.maximum(x, y), mf.isnan(x)


def integers(x, y):
    return (x + y) * 3, x - y, mf.abs(x), mf.minimum(x, y), mf.floor_divide(x, y), x < y


def bits(x, y):
    return x & y, x | y, x ^ y, ~x


def added(x, y):
    return x + 2 * y


def added_transposed(x, y):
    return x + y.T


def reduced(x, y):
    return mf.max(x, axis=-1), mf.sum((x * y).astype(mf.float32), axis=0)


def permuted(x, y):
    return mf.permute_dims(x, (1, 0)) * 2


def reshaped(x, y):
    return mf.reshape(x, (-1,)) + mf.reshape(y, (-1,))


def multiplied(x, y):
    return x @ y.T


def cases() -> Iterator[Case]:
    """The cases of this module."""
    shapes = ((None, 4096), (None, 100), (1000, 1), (5, 33, 127))
    functions = (exponentials, logarithms, waves, roundings, quotients, powers, choices)
    parameters = {"function": functions, "dtype": FLOATS, "shape": shapes, "fast_math": (False, True)}
    yield from sample("function", parameters, _function)
    parameters = {"function": (integers, bits), "dtype": NUMBERS[:4], "shape": shapes}
    yield from sample("integer", parameters, _function)
    parameters = {"from": DTYPES, "to": tuple(GROUPS), "shape": shapes}
    yield from sample("cast", parameters, _cast, _runs, _float8)
    functions = (added, added_transposed, reduced, permuted, reshaped, multiplied)
    square = ((256, 256), (1000, 1000), (2048, 2048), (264, 264))
    parameters = {
        "function": functions,
        "layout": tuple(LAYOUTS),
        "dtype": ("bfloat16", "float32", "int8"),
        "shape": square,
    }
    yield from sample("layout", parameters, _layout)


def _runs(row: Row) -> bool:
    return not _float8(row) or row.get("architecture", "hopper") in FLOAT8_KINDS


def _float8(row: Row) -> bool:
    return str(row.get("from")).startswith("float8") or row.get("to") == "float8"


def _shape(row: Row) -> tuple[Any, ...]:
    return tuple("rows" if extent is None else extent for extent in row["shape"])


def _function(row: Row) -> tuple[Any, ...]:
    spec = mf.TensorSpec(_shape(row), row["dtype"])
    return row["function"], [spec] * row["function"].__code__.co_argcount, {"fast_math": row.get("fast_math", False)}


def _cast(row: Row) -> tuple[Any, ...]:
    def cast(x):
        return tuple(x.astype(dtype) for dtype in GROUPS[row["to"]] if dtype != row["from"])

    return cast, [mf.TensorSpec(_shape(row), row["from"])], {}


def _layout(row: Row) -> tuple[Any, ...]:
    x = mf.TensorSpec(row["shape"], row["dtype"], strides=LAYOUTS[row["layout"]])
    return row["function"], [x, mf.TensorSpec(row["shape"], row["dtype"])], {}

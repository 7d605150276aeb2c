"""Element types of the fuzzer, and how they promote: written down again, so that mlirfuse's own table is checked."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Float:
    """A floating-point format.

    Attributes:
        digits: significant bits, the hidden one included.
        smallest: exponent of the smallest normal number.
        largest: the largest finite number.
        saturates: whether what is too large becomes the largest number, not infinity.
    """

    digits: int
    smallest: int
    largest: float
    saturates: bool = False

    @property
    def tiny(self) -> float:
        """The smallest subnormal number."""
        return 2.0 ** (self.smallest - self.digits + 1)


FORMATS = {
    "float8_e4m3fn": Float(4, -6, 448.0, saturates=True),
    "float8_e5m2": Float(3, -14, 57344.0, saturates=True),
    "float16": Float(11, -14, 65504.0),
    "bfloat16": Float(8, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    "float32": Float(24, -126, float(np.finfo(np.float32).max)),
    "float64": Float(53, -1022, float(np.finfo(np.float64).max)),
}
INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
HALVES = ("float16", "bfloat16")
DTYPES = ("bool", *INTEGERS, *FLOATS, *FLOAT8)

_RANK = {"bool": 0, "int": 1, "float": 2}
_DEFAULT = {"bool": "bool", "int": "int64", "float": "float32"}


class Refused(Exception):
    """The reference knows that mlirfuse refuses this, or that NumPy has no meaning for it."""


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def kind(dtype: str) -> str:
    return "bool" if dtype == "bool" else "int" if dtype in INTEGERS else "float"


def bits(dtype: str) -> int:
    return numpy_dtype(dtype).itemsize * 8


def promote(a: str, b: str) -> str:
    """The dtype that two tensors meet in; raises `Refused` for pairs that do not mix."""
    if a == b:
        return a
    if "bool" in (a, b):
        raise Refused(f"{a} with {b}")
    if kind(a) != kind(b):
        return a if kind(a) == "float" else b
    if bits(a) == bits(b):
        return "float16" if a in FLOAT8 else "float32"
    return a if bits(a) > bits(b) else b


def meet(strong: list[str], weak: list[str]) -> str:
    """The dtype of an operation: `strong` dtypes of tensors, `weak` kinds of numbers that adopt it."""
    top = max(weak, key=lambda k: _RANK[k], default="bool")
    if not strong:
        raise Refused("numbers only")
    result = strong[0]
    for dtype in strong[1:]:
        result = promote(result, dtype)
    if weak and _RANK[top] > _RANK[kind(result)]:
        return promote(result, _DEFAULT[top])
    if "bool" in weak and kind(result) != "bool":
        raise Refused("a Python bool with numbers")
    return result


def accumulator(dtype: str) -> str:
    """What sums of the dtype are kept in."""
    return "float32" if dtype in HALVES else dtype

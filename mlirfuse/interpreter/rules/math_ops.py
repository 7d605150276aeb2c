"""`math`: 16-bit types are computed in f32 and rounded once, as the device's routines do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.registry import direct
from mlirfuse.interpreter.rules.arith_int import as_unsigned

Function = Callable[..., np.ndarray]

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])

# Evaluated in f32 for 16-bit types and in the operands' own type otherwise.
NATIVE: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "powf": np.power,
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "copysign": np.copysign,
}
# Functions that NumPy lacks, or computes with several roundings: evaluated in f64 and rounded once.
WIDE: dict[str, Function] = {
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "erf": _erf,
    "erfc": _erfc,
    "round": lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a),
    "fpowi": lambda a, b: np.power(a, b),
    # A product of two f32 is exact in f64, so the result is that of a fused op, rounded twice; f64 is not fused.
    "fma": lambda a, b, c: a * b + c,
}
BOOLEAN: dict[str, Function] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def _native(function: Function) -> Function:
    def apply(*operands: np.ndarray) -> np.ndarray:
        dtype = operands[0].dtype
        if dtype.itemsize > 2:
            return function(*operands)
        return function(*[a.astype(np.float32) for a in operands]).astype(dtype)

    return apply


def _wide(function: Function) -> Function:
    return lambda *operands: function(*[a.astype(np.float64) for a in operands]).astype(operands[0].dtype)


for _name, _function in NATIVE.items():
    direct(f"math.{_name}")(_native(_function))
for _name, _function in WIDE.items():
    direct(f"math.{_name}")(_wide(_function))
for _name, _function in BOOLEAN.items():
    direct(f"math.{_name}")(_function)
direct("vector.fma")(_wide(WIDE["fma"]))
direct("math.absi")(np.abs)


@direct("math.ipowi")
def _ipowi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """An integer power; with a negative exponent 0, except for the bases 1 and -1 (the op's definition)."""
    positive = np.power(a, np.maximum(b, 0))
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b >= 0, positive, unit).astype(a.dtype)


@direct("math.ctpop")
def _ctpop(a: np.ndarray) -> np.ndarray:
    return np.bitwise_count(as_unsigned(a)).astype(a.dtype)


@direct("math.ctlz")
def _ctlz(a: np.ndarray) -> np.ndarray:
    bits, count = as_unsigned(a), np.zeros(a.shape, a.dtype)
    for shift in range(a.dtype.itemsize * 8):
        count += (bits >> np.asarray(shift, bits.dtype) == 0).astype(a.dtype)
    return count


@direct("math.clampf")
def _clampf(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(value, low), high)

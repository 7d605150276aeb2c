"""`math`: evaluated one precision up for 16-bit types and rounded once, as the device's routines do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.rules.arith_int import as_unsigned
from mlirfuse.interpreter.site import Site

Function = Callable[..., np.ndarray]

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)

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
# Composed of several roundings, or missing in NumPy: evaluated in f64 and rounded once.
WIDE: dict[str, Function] = {
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "erf": lambda a: _erf(a).astype(np.float64),
    "erfc": lambda a: _erfc(a).astype(np.float64),
    "round": lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a),
    "fpowi": lambda a, b: np.power(a, b),
    # A product of two f32 is exact in f64, so this is the fused result but for a double rounding; f64 is not fused.
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


def _register(name: str, function: Function) -> None:
    pure(name)(lambda site: function)


for _name, _function in NATIVE.items():
    _register(f"math.{_name}", _native(_function))
for _name, _function in WIDE.items():
    _register(f"math.{_name}", _wide(_function))
for _name, _function in BOOLEAN.items():
    _register(f"math.{_name}", _function)
_register("vector.fma", _wide(WIDE["fma"]))


@pure("math.absi")
def _absi(site: Site) -> Function:
    return np.abs


@pure("math.ipowi")
def _ipowi(site: Site) -> Function:
    """A negative exponent gives 0 but for the bases 1 and -1, as the op's definition says."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        positive = np.power(a, np.maximum(b, 0))
        unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
        return np.where(b >= 0, positive, unit).astype(a.dtype)

    return apply


@pure("math.ctpop")
def _ctpop(site: Site) -> Function:
    return lambda a: np.bitwise_count(as_unsigned(a)).astype(a.dtype)


@pure("math.ctlz")
def _ctlz(site: Site) -> Function:
    def apply(a: np.ndarray) -> np.ndarray:
        bits, count = as_unsigned(a), np.zeros(a.shape, a.dtype)
        for shift in range(a.dtype.itemsize * 8):
            count += (bits >> np.asarray(shift, bits.dtype) == 0).astype(a.dtype)
        return count

    return apply


@pure("math.clampf")
def _clampf(site: Site) -> Function:
    return lambda value, low, high: np.minimum(np.maximum(value, low), high)

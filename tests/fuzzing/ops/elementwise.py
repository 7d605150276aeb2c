"""Elementwise operations on bounded values: the semantics that mlirfuse documents, one function an operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tests.fuzzing.bounds import INF, Bounded, cast, exact, product, quotient, rounded, total, ulp
from tests.fuzzing.types import FLOAT8, FORMATS, HALVES, Refused, kind, meet, numpy_dtype

RELATIVE = {"float16": 2.0**-14, "bfloat16": 2.0**-14, "float32": 2.0**-21, "float64": 2.0**-48}
"""Error of a transcendental function: 8 units in float32 and 16 in float64 (NumPy's own error is in it); in half
precision the special function unit's, which is far below what the cast leaves."""


def operands(args: Sequence[Bounded], kinds: Sequence[str], *, as_float: bool = False) -> tuple[list[Bounded], str]:
    """The operands in the dtype that they meet in."""
    strong, weak = [a.dtype for a in args if a.weak is None], [a.weak for a in args if a.weak is not None]
    dtype = meet(strong, weak)
    if kind(dtype) not in kinds:
        raise Refused(f"an operation of {dtype}")
    if as_float and kind(dtype) != "float":
        dtype = "float32"
    if dtype in FLOAT8:
        raise Refused(f"arithmetic in {dtype}")
    return [_adopt(a, dtype) for a in args], dtype


def _adopt(x: Bounded, dtype: str) -> Bounded:
    if x.constant and x.weak == "int" and kind(dtype) == "int":
        limits = np.iinfo(dtype)
        if not limits.min <= int(x.value) <= limits.max:
            raise Refused(f"{x.value} does not fit {dtype}")
    if x.constant and x.weak is not None and dtype in HALVES:  # NumPy rounds it, in one step or in two
        number = np.asarray(x.value, np.float64).astype(numpy_dtype(dtype))
        return exact(number, dtype)
    return cast(x, dtype)


def wide_of(dtype: str) -> str:
    return "float32" if dtype in HALVES else dtype


def unsure_if(unsure: np.ndarray, *args: Bounded) -> np.ndarray:
    """An error that is infinite where something is not known, and 0 elsewhere."""
    for a in args:
        unsure = unsure | ~a.known
    return np.where(unsure, INF, 0.0)


def _integers(function: Callable[..., np.ndarray]) -> Callable[..., Bounded]:
    def apply(*args: Bounded) -> Bounded:
        value = function(*(a.value for a in args)).astype(args[0].value.dtype)
        return Bounded(value, unsure_if(np.zeros(value.shape, bool), *args), args[0].dtype, signed=True)

    return apply


def _arithmetic(floats: Callable[..., Bounded], integers: Callable[..., np.ndarray]) -> Callable[..., Bounded]:
    def apply(*args: Bounded) -> Bounded:
        same, dtype = operands(args, ("int", "float"))
        return floats(*same, dtype) if kind(dtype) == "float" else _integers(integers)(*same)

    return apply


def _negative(x: Bounded, dtype: str) -> Bounded:
    return replace(x.settled, value=-x.value)


def _absolute(x: Bounded, dtype: str) -> Bounded:
    return replace(x.settled, value=np.abs(x.value))


def _square(x: Bounded, dtype: str) -> Bounded:
    return product(x, x, dtype)


def _sign(x: Bounded, dtype: str) -> Bounded:
    unsure = (x.error > 0) & (np.abs(x.value) <= x.error)
    value = np.where(np.isnan(x.value) | (x.value == 0), x.value, np.sign(x.value))
    return Bounded(value, unsure_if(unsure, x), dtype, signed=x.signed)


def _extreme(larger: bool) -> Callable[..., Bounded]:
    choose = np.maximum if larger else np.minimum

    def apply(a: Bounded, b: Bounded, dtype: str) -> Bounded:
        value = choose(a.value, b.value)
        error = np.maximum(np.abs(choose(a.high, b.high) - value), np.abs(choose(a.low, b.low) - value))
        error = np.where(np.isnan(value) | ((a.error == 0) & (b.error == 0)), 0, error)
        error = np.where(np.isnan(error), 0, error)  # infinities of one sign
        return Bounded(value, np.where(a.known & b.known, error, INF), dtype)

    return apply


add = _arithmetic(total, np.add)
subtract = _arithmetic(lambda a, b, dtype: total(a, b, dtype, -1), np.subtract)
multiply = _arithmetic(product, np.multiply)
negative = _arithmetic(_negative, np.negative)
absolute = _arithmetic(_absolute, np.abs)
square = _arithmetic(_square, np.square)
sign = _arithmetic(_sign, np.sign)
maximum = _arithmetic(_extreme(True), np.maximum)
minimum = _arithmetic(_extreme(False), np.minimum)


def divide(a: Bounded, b: Bounded) -> Bounded:
    (x, y), dtype = operands((a, b), ("bool", "int", "float"), as_float=True)
    return _narrow(quotient(_widened(x), _widened(y), wide_of(dtype), 2.0**-22 if dtype in HALVES else 0.0), dtype)


def reciprocal(x: Bounded) -> Bounded:
    (y,), dtype = operands((x,), ("bool", "int", "float"), as_float=True)
    one = exact(np.ones(()), wide_of(dtype))
    return _narrow(quotient(one, _widened(y), wide_of(dtype), 2.0**-22 if dtype in HALVES else 0.0), dtype)


def _widened(x: Bounded) -> Bounded:
    return cast(x, wide_of(x.dtype))


def _narrow(x: Bounded, dtype: str) -> Bounded:
    return cast(x, dtype)


def remainder(a: Bounded, b: Bounded) -> Bounded:
    (x, y), dtype = operands((a, b), ("int", "float"))
    if kind(dtype) == "int":
        return _integers(np.remainder)(x, y)
    x, y = _widened(x), _widened(y)
    value, number, exactly, unsure = _whole_quotient(np.remainder, x, y)
    # The value is rounded already, maybe to the farther side of what the operands' errors leave.
    error = np.where(exactly, 0, x.error + (np.abs(number) + 1) * y.error + ulp(value, x.dtype) / 2)
    error = np.where(unsure | ~x.known | ~y.known, INF, error)
    return _narrow(rounded(value, error, x.dtype), dtype)


def floor_divide(a: Bounded, b: Bounded) -> Bounded:
    (x, y), dtype = operands((a, b), ("int", "float"))
    if kind(dtype) == "int":
        return _integers(np.floor_divide)(x, y)
    x, y = _widened(x), _widened(y)
    value, _, _, unsure = _whole_quotient(_floor_divide, x, y)
    if not y.signed:
        unsure = unsure | (y.value == 0)  # which infinity
    return _narrow(rounded(value, unsure_if(unsure, x, y), x.dtype), dtype)


def _whole_quotient(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Bounded, y: Bounded
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A function of floats that depends on the whole quotient.

    Returns:
        Its value, the quotient, where that is exact, and where the whole one is not known.
    """
    inner = numpy_dtype(x.dtype)
    value = function(x.value.astype(inner), y.value.astype(inner)).astype(np.float64)
    number = x.value / y.value
    off = (x.error + np.abs(number) * y.error) / np.where(np.abs(y.value) > y.error, np.abs(y.value) - y.error, np.nan)
    off = off + np.abs(number) * 2.0**-51  # this division's own
    exactly = (x.error == 0) & (y.error == 0)
    same = (np.floor(number - off) == np.floor(number + off)) & (np.abs(number) < 2.0 ** FORMATS[x.dtype].digits)
    same = same & ~(np.isinf(y.value) & (np.abs(x.value) <= x.error))  # whose sign decides
    return value, number, exactly, ~(exactly | same)


def _floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As mlirfuse documents it: the quotient of what the remainder leaves."""
    rest = np.fmod(a, b)
    number = np.rint((a - rest) / b - (((rest > 0) & (b < 0)) | ((rest < 0) & (b > 0))).astype(a.dtype))
    return np.where(b == 0, a / b, number)


def _decided(unsure: np.ndarray, value: np.ndarray, *args: Bounded) -> Bounded:
    return Bounded(value.astype(bool), unsure_if(unsure, *args), "bool")


def compare(function: Callable[..., np.ndarray]) -> Callable[..., Bounded]:
    """A comparison; unknown where the operands are as near as their errors."""

    def apply(a: Bounded, b: Bounded) -> Bounded:
        (x, y), _ = operands((a, b), ("bool", "int", "float"))
        value = function(x.value, y.value)
        error = x.error + y.error
        near = np.zeros(value.shape, bool)
        if kind(x.dtype) == "float":
            # a product that is rounded to an odd place
            near = (error > 0) & ~(np.abs(x.value - y.value) > error) & ~np.isnan(x.value) & ~np.isnan(y.value)
        return _decided(near, value, x, y)

    return apply


def predicate(function: Callable[..., np.ndarray], of_integers: bool) -> Callable[[Bounded], Bounded]:
    def apply(x: Bounded) -> Bounded:
        (y,), dtype = operands((x,), ("int", "float"))
        value = function(y.value) if kind(dtype) == "float" else np.full(y.shape, of_integers)
        return _decided(np.zeros(value.shape, bool), value, y)

    return apply


def bitwise(function: Callable[..., np.ndarray], kinds: Sequence[str]) -> Callable[..., Bounded]:
    def apply(*args: Bounded) -> Bounded:
        same, dtype = operands(args, kinds)
        value = function(*(a.value for a in same))
        return Bounded(value.astype(numpy_dtype(dtype)), unsure_if(np.zeros(value.shape, bool), *same), dtype)

    return apply


def where(condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    if condition.dtype != "bool":
        raise Refused("a condition that is no bool")
    dtype = meet([x.dtype for x in (a, b) if x.weak is None], [x.weak for x in (a, b) if x.weak is not None])
    x, y = _adopt(a, dtype), _adopt(b, dtype)
    value, error = np.where(condition.value, x.value, y.value), np.where(condition.value, x.error, y.error)
    error = np.where(condition.known, error, INF)
    return Bounded(value, error, dtype, signed=x.signed and y.signed, relative=max(x.relative, y.relative))


def joined(function: Callable[..., np.ndarray]) -> Callable[..., Bounded]:
    """NumPy's function that joins arrays along an axis."""

    def apply(*parts: Bounded, axis: int) -> Bounded:
        if any(part.weak is not None for part in parts):
            raise Refused("joins numbers")
        dtype = meet([part.dtype for part in parts], [])
        same = [_adopt(part, dtype) for part in parts]
        value, error = (function([getattr(x, name) for x in same], axis=axis) for name in ("value", "error"))
        return Bounded(value, error, dtype, signed=all(x.signed for x in same), relative=max(x.relative for x in same))

    return apply


def clip(x: Bounded, low: Bounded | None = None, high: Bounded | None = None) -> Bounded:
    if low is not None:
        x = maximum(x, low)
    return x if high is None else minimum(x, high)


def step(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Bounded], Bounded]:
    """floor, ceil, round and trunc: unknown where rounding decides."""

    def apply(x: Bounded) -> Bounded:
        (y,), dtype = operands((x,), ("int", "float"))
        if kind(dtype) == "int":
            return y
        low, value, high = function(y.low), function(y.value), function(y.high)
        with np.errstate(all="ignore"):
            error = np.maximum(np.abs(value - low), np.abs(high - value))
        error = np.where(np.isfinite(value) & y.known, error, unsure_if(np.zeros(y.shape, bool), y))
        signed = y.signed and not np.any((value == 0) & (np.signbit(low) != np.signbit(high)))
        return rounded(value, error, dtype, signed=signed)

    return apply


_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf_of(x: np.ndarray) -> np.ndarray:
    return _erf(x) if x.size else np.zeros(x.shape)


def monotone(
    function: Callable[[np.ndarray], np.ndarray], relative: float = 1.0, *, exactly: bool = False
) -> Callable[[Bounded], Bounded]:
    """A function whose values at the ends of an interval bound it.

    Args:
        function: in float64.
        relative: how many times `RELATIVE` it is off.
        exactly: whether single and double precision are rounded correctly.
    """

    def apply(x: Bounded) -> Bounded:
        (y,), dtype = operands((x,), ("bool", "int", "float"), as_float=True)
        y = _widened(y)
        ends = [function(e) for e in (y.low, y.high)]
        value = function(y.value)
        return _finish(y, value, ends, dtype, 0.0 if exactly else relative)

    return apply


def _finish(x: Bounded, value: np.ndarray, ends: Sequence[np.ndarray], dtype: str, times: float) -> Bounded:
    """A function's value, with what its operand's error and its own add."""
    error = np.zeros(value.shape)
    for end in ends:
        error = np.maximum(error, np.where(x.error > 0, np.abs(end - value), 0))
    error = np.where(np.isnan(error), INF, error)  # an end outside of the domain, or not finite
    certain = (x.error == 0) & (~np.isfinite(value) | ~np.isfinite(x.value))
    own = times * (RELATIVE[dtype] * (np.abs(value) + error) + 4 * FORMATS[x.dtype].tiny)
    error = np.where(certain, 0, error + np.where(np.isfinite(value), own, 0))
    if not x.signed:
        error = np.where((x.value == 0) & np.isinf(value), INF, error)
    error = np.where(x.known, error, INF)
    return _narrow(rounded(value, error, x.dtype), dtype)


def periodic(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Bounded], Bounded]:
    """Sine and cosine, whose slope is at most 1."""

    def apply(x: Bounded) -> Bounded:
        (y,), dtype = operands((x,), ("bool", "int", "float"), as_float=True)
        y = _widened(y)
        value = function(y.value)
        shift = np.minimum(y.error, 2.0)
        return _finish(y, value, [value - shift, value + shift], dtype, 1.0)

    return apply


def sigmoid(x: Bounded) -> Bounded:
    (y,), dtype = operands((x,), ("bool", "int", "float"), as_float=True)
    y = _widened(y)
    return _finish(y, sigmoid_of(y.value), [sigmoid_of(e) for e in (y.low, y.high)], dtype, 2.0)


def sigmoid_of(x: np.ndarray) -> np.ndarray:
    """Without exp(-x), which overflows in float64 where the result is subnormal and mlirfuse returns it."""
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1.0) / (1 + power)


def power(base: Bounded, exponent: Bounded) -> Bounded:
    """`**`; known exponents that are small integers or a half are products and roots, as documented."""
    (a, b), dtype = operands((base, exponent), ("int", "float"))
    number = float(exponent.value) if exponent.constant else None
    if kind(dtype) == "int":
        if number is None or number < 0:
            raise Refused("an integer's power")
        return _integers(lambda x: x ** int(number))(a)
    if number == 2:
        return product(a, a, dtype)
    if number in (0.5, -0.5):
        return _narrow(SQRT(_widened(a)) if number > 0 else RSQRT(_widened(a)), dtype)
    if number is not None and abs(number) <= 8 and number == int(number):
        return _narrow(_chain(_widened(a), int(number)), dtype)
    a, b = _widened(a), _widened(b)
    value = np.power(a.value, b.value)
    corners = [np.power(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    moved = (a.error > 0) | (b.error > 0)
    error = np.zeros(value.shape)
    for corner in corners:
        error = np.maximum(error, np.where(moved, np.abs(corner - value), 0))
    error = np.where(np.isnan(error) | (moved & ~(a.low > 0)), INF, error)
    own = 4 * (RELATIVE[dtype] * (np.abs(value) + error) + 4 * FORMATS[a.dtype].tiny)
    error = error + np.where(np.isfinite(value), own, 0)
    if not a.signed:
        error = np.where((a.value == 0) & np.isinf(value), INF, error)
    return _narrow(rounded(value, np.where(a.known & b.known, error, INF), a.dtype), dtype)


def _chain(x: Bounded, count: int) -> Bounded:
    """Repeated squaring."""
    result, factor, rest = None, x, abs(count)
    while rest:
        if rest & 1:
            result = factor if result is None else product(result, factor, x.dtype)
        rest >>= 1
        if rest:
            factor = product(factor, factor, x.dtype)
    if result is None:
        return exact(np.ones(x.shape), x.dtype)
    return quotient(exact(np.ones(()), x.dtype), result, x.dtype) if count < 0 else result


def full_like(x: Bounded, number: Bounded, dtype: str | None = None) -> Bounded:
    target = dtype or x.dtype
    filled = _adopt(number, target) if number.weak is not None else cast(number, target)
    value, error = np.broadcast_to(filled.value, x.shape), np.broadcast_to(filled.error, x.shape)
    return Bounded(value.copy(), error.copy(), target, signed=True)


SQRT = monotone(np.sqrt, exactly=True)
RSQRT = monotone(lambda x: 1 / np.sqrt(x))
UNARY_MATH = {
    "sqrt": SQRT,
    "rsqrt": RSQRT,
    "exp": monotone(np.exp),
    "exp2": monotone(np.exp2),
    "expm1": monotone(np.expm1),
    "log": monotone(np.log),
    "log2": monotone(np.log2),
    "log1p": monotone(np.log1p),
    "tanh": monotone(np.tanh),
    "erf": monotone(erf_of),
    "sin": periodic(np.sin),
    "cos": periodic(np.cos),
    "sigmoid": sigmoid,
}
STEPS = {"floor": step(np.floor), "ceil": step(np.ceil), "round": step(np.rint), "trunc": step(np.trunc)}
COMPARISONS = {
    name: compare(getattr(np, name))
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
}
PREDICATES = {
    "isnan": predicate(np.isnan, False),
    "isinf": predicate(np.isinf, False),
    "isfinite": predicate(np.isfinite, True),
}
LOGIC = {f"logical_{n}": bitwise(getattr(np, f"logical_{n}"), ("bool",)) for n in ("and", "or", "xor", "not")}
BITWISE = {f"bitwise_{n}": bitwise(getattr(np, f"bitwise_{n}"), ("bool", "int")) for n in ("and", "or", "xor")}
BITWISE["bitwise_invert"] = bitwise(np.invert, ("bool", "int"))
SHIFTS = {f"bitwise_{n}_shift": bitwise(getattr(np, f"{n}_shift"), ("int",)) for n in ("left", "right")}

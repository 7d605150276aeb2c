"""Values with error bounds: what an exact computation gives, and how far a correct kernel may be from it.

A float has its value in float64 and an absolute error; an infinite error says that nothing is known of the element
(a decision that rounding may take either way, an overflow in an intermediate sum). Integers and bools are exact, or
unknown. NaN and infinities are exact: a kernel has to return the same. Rounding is monotone, so that the interval of a
value is rounded at its ends: exact operands give the one number that IEEE arithmetic allows, and no bound at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.fuzzing.types import FLOAT8, FORMATS, HALVES, kind, numpy_dtype

INF = np.inf
SLACK = 1 + 2.0**-20
"""Bounds are computed in float64 themselves."""


@dataclass(frozen=True)
class Bounded:
    """A tensor or number of the reference.

    Attributes:
        value: float64 for floats, else the dtype itself.
        error: float64, of the same shape.
        dtype: of the tensor; for numbers that adopt a dtype what Python has: `float64`, `int64` or `bool`.
        weak: the kind of a number that adopts the dtype of what it meets; None for tensors and NumPy's scalars.
        signed: whether the signs of zeros are known.
        constant: whether it is known while tracing.
        contracts: whether it is a rounded product, which a sum over dimensions may take as it was before.
        slip: of such a product that an elementwise sum may take as it was before: how far from its value that may be,
            and infinite where the rounding made an infinity; None where no sum may.
        relative: relative error of float32 quotients in it, besides `error`, where a cast to half precision is all that
            is left of it (`lower-rounded-divisions`).
    """

    value: np.ndarray
    error: np.ndarray
    dtype: str
    weak: str | None = None
    signed: bool = False
    constant: bool = False
    contracts: bool = False
    slip: np.ndarray | None = None
    relative: float = 0.0

    @property
    def settled(self) -> Bounded:
        """The same as what no sum takes otherwise than rounded."""
        return replace(self, contracts=False, slip=None)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def known(self) -> np.ndarray:
        return ~np.isinf(self.error)

    @property
    def low(self) -> np.ndarray:
        return self.value - self.error

    @property
    def high(self) -> np.ndarray:
        return self.value + self.error


def exact(array: np.ndarray, dtype: str, **flags: object) -> Bounded:
    value = array.astype(np.float64) if kind(dtype) == "float" else np.asarray(array, numpy_dtype(dtype))
    return Bounded(np.asarray(value), np.zeros(np.shape(value)), dtype, signed=True, **flags)  # type: ignore[arg-type]


def nearest(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 rounded to nearest even in a format, in float64."""
    if dtype == "float64":
        return values
    form = FORMATS[dtype]
    exponent = np.maximum(np.frexp(values)[1], form.smallest + 1) - form.digits
    step = np.ldexp(1.0, np.where(np.isfinite(values), exponent, 0))
    rounded = np.where(np.isfinite(values), np.rint(values / step) * step, values)
    if form.saturates:
        return np.clip(rounded, -form.largest, form.largest)
    return np.where(np.abs(rounded) > form.largest, np.copysign(INF, rounded), rounded)


def ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of numbers of this size in a format."""
    form = FORMATS[dtype]
    finite = np.where(np.isfinite(values), values, 0)
    return np.ldexp(1.0, np.maximum(np.frexp(finite)[1], form.smallest + 1) - form.digits)


def _hull(value: np.ndarray, ends: list[np.ndarray], error: np.ndarray) -> np.ndarray:
    """How far ends are from a value; infinite where one is not finite that differs."""
    result = np.zeros(value.shape)
    for end in ends:
        same = (end == value) | (np.isnan(end) & np.isnan(value))
        apart = np.where(same, 0, np.abs(end - value))
        result = np.maximum(result, np.where(np.isnan(apart), INF, apart))
    return np.where(np.isinf(error), INF, result)


def rounded(value: np.ndarray, error: np.ndarray, dtype: str, *, through: str | None = None, **flags: bool) -> Bounded:
    """The tensor of a dtype after one rounding; `through` another dtype, too, where a device may take that way."""
    error = np.where(np.isnan(error), INF, error)
    error = np.where(error > 0, error * SLACK, 0)
    if dtype == "float64":
        own = np.where(np.isfinite(value), np.abs(value) * 2.0**-51 + FORMATS[dtype].tiny, 0)
        error = np.where(error > 0, error + own, 0)
    middle = nearest(value, dtype)
    ends = [nearest(value - error, dtype), nearest(value + error, dtype)]
    if through is not None:
        ends += [nearest(nearest(x, through), dtype) for x in (value - error, value, value + error)]
    return Bounded(middle, _hull(middle, ends, error), dtype, **flags)


def product(a: Bounded, b: Bounded, dtype: str) -> Bounded:
    """a * b, rounded; sums may contract it, elementwise ones where `Program.evaluate` leaves it the `slip`."""
    value = a.value * b.value
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    error = np.where(_may_move(a, b), error + FORMATS["float64"].tiny, 0)
    least = np.maximum(np.abs(a.value) - a.error, 0) * np.maximum(np.abs(b.value) - b.error, 0)
    error = np.where(_overflows(value, a, b) & np.isfinite(least), INF, error)
    zero_times_infinity = (may_vanish(a) & np.isinf(b.value)) | (may_vanish(b) & np.isinf(a.value))
    infinite = np.isinf(a.value) | np.isinf(b.value) | np.isnan(value)
    error = np.where(infinite & ~zero_times_infinity, 0, np.where(zero_times_infinity, INF, error))
    result = rounded(value, np.where(a.known & b.known, error, INF), dtype, signed=a.signed and b.signed)
    if dtype in HALVES:
        return result
    whole = (result.error == 0) & ((_significant(a.value) + _significant(b.value) <= 53) & (result.value == value))
    whole = whole | ~np.isfinite(a.value) | ~np.isfinite(b.value)  # what is special needs no rounding
    largest = np.abs(value) + np.where(np.isinf(result.error), 0, result.error)
    slip = np.where(np.isinf(result.value), INF, ulp(np.maximum(largest, FORMATS[dtype].tiny), dtype) / 2)
    contracts = bool(np.any((result.value != value) | (dtype == "float64")))
    relative = a.relative + b.relative
    return replace(result, contracts=contracts, slip=np.where(whole, 0, slip), relative=relative)


def _significant(values: np.ndarray) -> np.ndarray:
    """How many bits the significand of each number has."""
    mantissa = np.abs(np.frexp(np.where(np.isfinite(values), values, 0))[0] * 2.0**53).astype(np.int64)
    return np.where(mantissa == 0, 0, 53 - np.log2(np.maximum(mantissa & -mantissa, 1)))


def may_vanish(x: Bounded) -> np.ndarray:
    """Whether a number that is not known exactly may be zero."""
    return (x.error > 0) & (np.abs(x.value) <= x.error)


def _may_move(a: Bounded, b: Bounded) -> np.ndarray:
    """Whether a product may be another than that of the values: nothing is, times a zero."""
    zero = ((a.value == 0) & (a.error == 0)) | ((b.value == 0) & (b.error == 0))
    return ((a.error > 0) | (b.error > 0)) & ~zero


def _overflows(value: np.ndarray, a: Bounded, b: Bounded) -> np.ndarray:
    """Where an infinity is made of numbers: it may be one no longer where these are smaller, within their errors."""
    return np.isinf(value) & np.isfinite(a.value) & np.isfinite(b.value) & ((a.error > 0) | (b.error > 0))


def total(a: Bounded, b: Bounded, dtype: str, sign: int = 1) -> Bounded:
    """a + b, or a - b; a product that nothing else can tell from its rounding is taken as either."""
    value = a.value + sign * b.value
    infinite = np.isinf(a.value) | np.isinf(b.value) | np.isnan(value)
    slips = [x.slip for x in (a, b) if x.slip is not None]
    error = np.where(infinite, 0, a.error + b.error + sum(np.where(np.isinf(s), 0, s) for s in slips))
    unsure = ~a.known | ~b.known
    least = np.abs(a.value / 2 + sign * b.value / 2) - error / 2
    unsure = unsure | (_overflows(value, a, b) & ~(least * 2 > FORMATS["float64"].largest))
    for slip in slips:
        unsure = unsure | np.isinf(slip)
    return rounded(value, np.where(unsure, INF, error), dtype)


def quotient(a: Bounded, b: Bounded, dtype: str, relative: float = 0.0) -> Bounded:
    """a / b, with a relative error besides the rounding."""
    value = a.value / b.value
    least = np.abs(b.value) - b.error
    error = (a.error + np.abs(value) * b.error) / np.where(least > 0, least, np.nan)
    moved = ((a.error > 0) | (b.error > 0)) & ((a.value != 0) | (a.error > 0))
    error = np.where(moved, error + FORMATS["float64"].tiny, 0) + np.abs(value) * relative
    error = np.where(np.isnan(value) | np.isinf(value) | np.isinf(b.value), 0, error)
    unsure = ~a.known | ~b.known | ((b.error > 0) & (least <= 0))
    smallest = (np.abs(a.value) - a.error) / (np.abs(b.value) + b.error)
    unsure = unsure | (_overflows(value, a, b) & (b.value != 0) & np.isfinite(smallest))
    if not b.signed:
        unsure = unsure | (b.value == 0)
    unsure = unsure | ((b.value == 0) & (a.error > 0))
    result = rounded(value, np.where(unsure, INF, error), dtype, signed=a.signed and b.signed)
    if dtype != "float32":
        return result
    small = (np.abs(result.value) < _CORRECTED) & (value != 0)
    error = result.error + np.where(small, 1.5 * ulp(result.value, dtype), 0)
    return replace(result, error=error, relative=a.relative + b.relative + _ROUNDED_LATER)


_CORRECTED = 2.0**-101
"""From here on float32 quotients are correctly rounded, as `mf.divide` says; smaller ones are within 1.5 units."""

_ROUNDED_LATER = 2.0**-22
"""Relative error of float32 quotients that are rounded to half precision: two units in the last place (`div.full`)."""


def cast(x: Bounded, dtype: str) -> Bounded:
    """`astype`."""
    if x.dtype == dtype:
        return replace(x, weak=None)
    x = x.settled
    source, target = kind(x.dtype), kind(dtype)
    if target == "float":
        if dtype in FLOAT8 and x.dtype not in ("float32", *HALVES, *FLOAT8):
            return cast(cast(x, "float32"), dtype)
        if x.dtype in FLOAT8 and dtype == "float64":
            return replace(x, dtype=dtype, weak=None)
        if source == "float" and x.weak is None and bits_of(dtype) > bits_of(x.dtype):
            return replace(x, dtype=dtype, weak=None)
        wide = x.value.astype(np.float64)
        error = x.error
        if dtype in HALVES and x.relative:
            error = error + np.where(np.isfinite(wide), np.abs(wide), 0) * x.relative
        if x.dtype == "int64" and dtype == "float32":  # one rounding, not one to float64 before
            direct = x.value.astype(np.float32).astype(np.float64)
            return Bounded(direct, error, dtype, signed=True)
        through = "float32" if dtype in HALVES and x.dtype in ("float64", "int32", "int64") else None
        if x.dtype == "int64" and through:  # nor of what float64 has made of it
            error = np.where(wide.astype(np.longdouble) == x.value, error, np.spacing(np.abs(wide)))
        return rounded(wide, error, dtype, through=through, signed=x.signed)
    if target == "bool":
        unsure = ~x.known if source != "float" else ~x.known | may_vanish(x)
        return Bounded(x.value != 0, np.where(unsure, INF, 0), dtype)
    if source == "float":
        return _to_integer(x, dtype)
    return Bounded(x.value.astype(numpy_dtype(dtype)), x.error, dtype, signed=True)


def bits_of(dtype: str) -> int:
    return numpy_dtype(dtype).itemsize


def _to_integer(x: Bounded, dtype: str) -> Bounded:
    """Truncated; what does not fit is undefined, as in C."""
    limits = np.iinfo(dtype)
    whole = np.trunc(x.value)
    unsure = ~x.known | (np.trunc(x.low) != whole) | (np.trunc(x.high) != whole)
    unsure = unsure | ~np.isfinite(whole) | (whole < limits.min) | (whole >= float(limits.max) + (limits.bits < 64))
    value = np.where(unsure, 0, whole).astype(np.int64).astype(dtype)
    return Bounded(value, np.where(unsure, INF, 0), dtype, signed=True)

"""Reductions and products on bounded values. Sums are kept in float32 for half precision, else in their own dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod as number_of

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tests.fuzzing.bounds import INF, Bounded, cast, exact, product, quotient, total
from tests.fuzzing.ops.elementwise import SQRT
from tests.fuzzing.types import FLOAT8, FORMATS, Refused, accumulator, kind, numpy_dtype

Axes = tuple[int, ...]


def axes_of(axis: int | Sequence[int] | None, rank: int) -> Axes:
    """The dimensions from 0; raises NumPy's `AxisError` for one that there is not, or twice."""
    given = tuple(range(rank)) if axis is None else axis
    return tuple(sorted(normalize_axis_tuple(given, rank)))


def roundings(count: int, dtype: str) -> float:
    """How many units of rounding a sum of so many numbers may be off, of the sum of their sizes.

    Roundings of a sum are independent of each other: the square root is six deviations wide. `_drift` has what is not.
    """
    return (4 + 2 * count**0.5) * 2.0 ** -FORMATS[dtype].digits


def lowest_bit(values: np.ndarray, axes: Axes) -> np.ndarray:
    """The largest power of two that all elements are multiples of, along axes; infinite where all are 0."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.where(np.isfinite(values), mantissa, 0) * 2.0**53).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.min(np.where(whole == 0, INF, lowest), axis=axes, initial=INF)


def _drift(values: np.ndarray, axes: Axes, dtype: str) -> np.ndarray:
    """How far sums of equal numbers drift when they are added one by one: measured, both ways, three times over."""
    if values.size == 0:
        return np.zeros([n for d, n in enumerate(values.shape) if d not in axes])
    kept = [d for d in range(values.ndim) if d not in axes]
    rows = values.transpose(*kept, *axes).reshape(*[values.shape[d] for d in kept], -1)
    narrow = rows.astype(numpy_dtype(dtype))
    exactly = rows.astype(np.longdouble).sum(-1).astype(np.float64)
    worst = np.zeros(exactly.shape)
    for order in (narrow, narrow[..., ::-1]):
        serial = np.cumsum(order, axis=-1, dtype=narrow.dtype)[..., -1].astype(np.float64)
        worst = np.maximum(worst, np.nan_to_num(np.abs(serial - exactly), nan=0, posinf=0, neginf=0))
    return 3 * worst


def _sum(x: Bounded, axes: Axes, *, exactly: bool = True) -> Bounded:
    """The sum of floats in the dtype of `x`, which is that of the accumulator."""
    value = _summed(x.value, axes)
    finite = np.where(np.isfinite(x.value), x.value, 0)
    size = np.sum(np.abs(finite), axis=axes)
    count = number_of(x.shape[d] for d in axes)
    error = np.sum(np.where(np.isinf(x.error), 0, x.error), axis=axes)
    bound = size * roundings(count, x.dtype) + _drift(finite, axes, x.dtype) + error
    digits = FORMATS[x.dtype].digits
    clean = (error == 0) & ((size < 2.0**digits * lowest_bit(finite, axes)) | (count <= 1))
    bound = np.where(clean & exactly & (not x.contracts or count <= 1), 0, bound)
    value = np.where(np.isnan(value) & ~np.isnan(np.sum(special(x.value), axis=axes)), INF, value)
    return accumulated(value, bound, size + error, np.any(~x.known, axis=axes), x.dtype)


def _summed(values: np.ndarray, axes: Axes) -> np.ndarray:
    """The sum, with bits to spare: NumPy adds the rows of an array one by one, thousands of roundings off."""
    return np.asarray(np.sum(values.astype(np.longdouble), axis=axes).astype(np.float64))


def special(values: np.ndarray) -> np.ndarray:
    """The numbers with 1, 0 or -1 in place of finite ones: sums and products of these are NaN without any overflow."""
    return np.where(np.isfinite(values), np.sign(values), values)


def accumulated(value: np.ndarray, bound: np.ndarray, size: np.ndarray, unsure: np.ndarray, dtype: str) -> Bounded:
    """A sum with its bound; unknown where the sum of the terms' sizes overflows, but for NaN."""
    overflows = ~(size < FORMATS[dtype].largest)
    bound = np.where(np.isfinite(value), bound, 0)
    unsure = unsure | (overflows & ~np.isnan(value))
    value = np.where(unsure, 0, value)
    error = np.where(unsure, INF, bound)
    return Bounded(np.asarray(value), np.asarray(error), dtype)


def _exact(x: Bounded, axes: Axes, function: np.ufunc) -> Bounded:
    value = function.reduce(x.value, axis=axes, dtype=x.value.dtype)
    return Bounded(np.asarray(value), np.where(np.any(~x.known, axis=axes), INF, 0.0), x.dtype, signed=True)


def _kept(result: Bounded, x: Bounded, axes: Axes, keepdims: bool) -> Bounded:
    if not keepdims:
        return result
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
    return replace(result, value=result.value.reshape(shape), error=result.error.reshape(shape))


def _result_of(x: Bounded, dtype: str | None) -> str:
    result = dtype or (x.dtype if kind(x.dtype) == "float" else "int64")
    if kind(result) == "bool" or result in FLOAT8:
        raise Refused(f"a sum in {result}")
    return result


def sum_of(x: Bounded, axis: Axes | None = None, keepdims: bool = False, dtype: str | None = None) -> Bounded:
    axes, result = axes_of(axis, len(x.shape)), _result_of(x, dtype)
    source = cast(cast(x, result), accumulator(result))
    reduced = _exact(source, axes, np.add) if kind(result) == "int" else _sum(source, axes) if axes else source
    return _kept(cast(reduced, result), x, axes, keepdims)


def prod_of(x: Bounded, axis: Axes | None = None, keepdims: bool = False, dtype: str | None = None) -> Bounded:
    axes, result = axes_of(axis, len(x.shape)), _result_of(x, dtype)
    source = cast(cast(x, result), accumulator(result))
    if kind(result) == "int":
        return _kept(_exact(source, axes, np.multiply), x, axes, keepdims)
    return _kept(cast(_product_of(source, axes) if axes else source, result), x, axes, keepdims)


def _product_of(x: Bounded, axes: Axes) -> Bounded:
    form = FORMATS[x.dtype]
    count = number_of(x.shape[d] for d in axes)
    value = np.prod(x.value, axis=axes)
    size = np.abs(x.value) + x.error
    most = np.prod(np.maximum(size, 1), axis=axes)
    least = np.prod(np.minimum(np.where(size == 0, 1, size), 1), axis=axes)
    relative = np.where(x.error > 0, x.error / np.abs(x.value), 0)
    growth = np.expm1(np.sum(np.log1p(relative), axis=axes))
    # Where an operand may vanish, its own growth has no end: the product of the largest operands has.
    grown = np.where(np.isfinite(growth), np.abs(value) * growth, np.abs(value) + np.prod(size, axis=axes))
    rounds = count * 2.0**-form.digits * 1.5
    bound = grown + (np.abs(value) + grown) * rounds
    clean = (growth == 0) & (_bits_of(x, axes) <= form.digits)
    bound = np.where(clean | (count <= 1) & (growth == 0), 0, bound)
    unsure = np.any(~x.known, axis=axes) | ~(most < form.largest) | (least < 2.0**form.smallest)
    unsure = unsure & ~np.any(np.isnan(x.value) & x.known, axis=axes)
    value = np.where(unsure, 0, value)
    return Bounded(
        np.asarray(value), np.where(unsure, INF, np.where(np.isfinite(value), bound, 0)), x.dtype, signed=False
    )


def _bits_of(x: Bounded, axes: Axes) -> np.ndarray:
    """Significant bits of a product at most."""
    mantissa = np.abs(np.frexp(np.where(np.isfinite(x.value), x.value, 0))[0] * 2.0**53).astype(np.int64)
    lowest = mantissa & -mantissa
    return np.sum(np.where(mantissa == 0, 0, 53 - np.log2(np.maximum(lowest, 1))), axis=axes)


def mean_of(x: Bounded, axis: Axes | None = None, keepdims: bool = False, dtype: str | None = None) -> Bounded:
    result = dtype or x.dtype
    result = result if kind(result) == "float" else "float32"
    if result in FLOAT8:
        raise Refused("a mean in float8")
    wide = accumulator(result)
    axes = axes_of(axis, len(x.shape))
    return _kept(cast(_mean(cast(cast(x, result), wide), axes, 0.0), result), x, axes, keepdims)


def _mean(x: Bounded, axes: Axes, correction: float) -> Bounded:
    """The sum over the number; moments that are merged round more often, and never give more than they have."""
    count = number_of(x.shape[d] for d in axes)
    added = _sum(x, axes, exactly=False) if axes else x
    divisor = exact(np.asarray(max(count - correction, 0.0)), x.dtype)
    result = quotient(added, divisor, x.dtype, 2.0 ** (2 - FORMATS[x.dtype].digits))
    moves = np.isfinite(result.value) & ((result.value != 0) | (result.error > 0))
    underflow = np.where(moves, (2 + count**0.5) * FORMATS[x.dtype].tiny, 0)  # of means that are merged
    return replace(result, error=result.error + underflow)


def _variance(x: Bounded, axis: Axes | None, correction: float) -> tuple[Bounded, Axes, str]:
    result = x.dtype if kind(x.dtype) == "float" else "float32"
    if result in FLOAT8:
        raise Refused("a variance in float8")
    wide, axes = cast(x, accumulator(result)), axes_of(axis, len(x.shape))
    wide = replace(wide, slip=None)  # the mean reads it too
    centre = _kept(_mean(wide, axes, 0.0), wide, axes, True)
    apart = total(wide, centre, wide.dtype, -1)
    return _mean(product(apart, apart, wide.dtype), axes, correction), axes, result


def var_of(x: Bounded, axis: Axes | None = None, keepdims: bool = False, correction: float = 0.0) -> Bounded:
    value, axes, result = _variance(x, axis, correction)
    return _kept(cast(value, result), x, axes, keepdims)


def std_of(x: Bounded, axis: Axes | None = None, keepdims: bool = False, correction: float = 0.0) -> Bounded:
    value, axes, result = _variance(x, axis, correction)
    # A variance is never negative: the interval ends at 0.
    high = value.high
    low = np.maximum(value.low, 0)
    centre = np.where(value.error > 0, (low + high) / 2, value.value)
    half = np.where(value.error > 0, (high - low) / 2, 0)
    half = np.where(value.known, half, INF)
    root = SQRT(replace(value, value=np.where(np.isfinite(centre), centre, value.value), error=half))
    return _kept(cast(root, result), x, axes, keepdims)


def _extremum(larger: bool):
    choose = np.max if larger else np.min

    def apply(x: Bounded, axis: Axes | None = None, keepdims: bool = False) -> Bounded:
        axes = axes_of(axis, len(x.shape))
        if kind(x.dtype) == "bool" or x.dtype in FLOAT8:
            raise Refused(f"an extremum of {x.dtype}")
        if 0 in [x.shape[d] for d in axes]:
            raise Refused("an extremum of nothing")
        if not axes:
            return x
        unsure = np.any(~x.known, axis=axes)
        if kind(x.dtype) == "int":
            return _kept(
                Bounded(np.asarray(choose(x.value, axis=axes)), np.where(unsure, INF, 0.0), x.dtype), x, axes, keepdims
            )
        value = choose(x.value, axis=axes)
        error = np.maximum(np.abs(choose(x.high, axis=axes) - value), np.abs(choose(x.low, axis=axes) - value))
        error = np.where(np.isfinite(value), np.nan_to_num(error, nan=INF), 0)
        return _kept(Bounded(np.asarray(value), np.where(unsure, INF, error), x.dtype), x, axes, keepdims)

    return apply


max_of, min_of = _extremum(True), _extremum(False)


def _logical(every: bool):
    def apply(x: Bounded, axis: Axes | None = None, keepdims: bool = False) -> Bounded:
        axes, bools = axes_of(axis, len(x.shape)), cast(x, "bool")
        decided = bools.known & (bools.value != every)
        value = ~np.any(decided, axis=axes) if every else np.any(decided, axis=axes)
        unsure = np.any(~bools.known, axis=axes) & ~np.any(decided, axis=axes)
        return _kept(Bounded(np.asarray(value), np.where(unsure, INF, 0.0), "bool"), x, axes, keepdims)

    return apply


all_of, any_of = _logical(True), _logical(False)

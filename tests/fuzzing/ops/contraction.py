"""Matrix products on bounded values."""

from __future__ import annotations

import numpy as np

from tests.fuzzing.bounds import INF, Bounded, bits_of, cast, may_vanish
from tests.fuzzing.ops.reductions import accumulated, lowest_bit, roundings, special
from tests.fuzzing.types import FLOAT8, FORMATS, Refused, accumulator, kind, promote


def matmul(a: Bounded, b: Bounded, dtype: str | None = None, precision: str | None = None) -> Bounded:
    common = promote(a.dtype, b.dtype)
    both_float8 = a.dtype in FLOAT8 and b.dtype in FLOAT8
    if common == "bool" or (common in FLOAT8 and not both_float8):
        raise Refused(f"a product of {common}")
    if not a.shape or not b.shape:
        raise Refused("a product of numbers")
    result = dtype or ("float32" if both_float8 else common)
    wide = "float32" if both_float8 else accumulator(common)
    x, y = (cast(t, t.dtype if both_float8 else common) for t in (a, b))
    if kind(common) == "int" and kind(result) == "float" and result not in FLOAT8:
        wide = accumulator(result)
        return cast(_contraction(cast(a, wide), cast(b, wide), wide, precision), result)
    if kind(common) == "int":
        if kind(result) == "int" and bits_of(result) > bits_of(common):
            common = result
            x, y = cast(a, common), cast(b, common)
        value = np.matmul(x.value, y.value)
        error = np.where(_meet(~x.known, ~y.known), INF, 0.0)
        return cast(Bounded(np.asarray(value), error, common, signed=True), result)
    return cast(_contraction(x, y, wide, precision), result)


_TERMS = {None: 0.0, "ieee": 0.0, "3xtf32": 2.0**-19, "tf32": 2.0**-9, "fast_accum": 2.0**-9}
"""What a precision loses of each term, at most; of float8 `fast_accum` where nothing is said, too, in runs of 128."""

_KEPT_OF_FLOAT8 = 12
"""Bits of a sum of float8 products that no tensor core cuts off: Hopper's keep 13 behind the first."""

_TF32_END = 2.0**128 - 2.0**116
"""From here on numbers round to an infinity in tf32, which has 11 significant bits."""


def _meet(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where a row of `a` or a column of `b` has an element."""
    rows, columns = a.astype(float), b.astype(float)
    return np.asarray(np.matmul(rows, np.ones(b.shape)) + np.matmul(np.ones(a.shape), columns) > 0)


def _pair(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where an element of a row of `a` meets one of a column of `b` in a product."""
    return np.asarray(np.matmul(a.astype(float), b.astype(float)) > 0)


def _unit(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """A power of two that all terms of each sum are multiples of."""
    row = lowest_bit(xs, (xs.ndim - 1,))
    column = lowest_bit(ys, (ys.ndim - 2 if ys.ndim > 1 else 0,))
    return row[..., None] * column[..., None, :] if xs.ndim > 1 and ys.ndim > 1 else row * column


def _aligned(a: np.ndarray, b: np.ndarray, *dtypes: str) -> np.ndarray:
    """The sum of the sizes of products as tensor cores see them, to which what they cut off is proportional.

    They do not normalise what they multiply: a subnormal number has the exponent of the smallest normal one, and zero
    that of float32's, in the alignment of all terms to the largest (Xie et al., "MMA-Sim", 2025, arXiv:2511.10909).
    So 2^-24 * 65504 in float16, which is 2^-8, is aligned like 2, and costs the other terms ten bits.
    """
    seen = [
        np.maximum(size, 2.0 ** np.where(size == 0, FORMATS["float32"].smallest, FORMATS[dtype].smallest))
        for size, dtype in zip((a, b), dtypes, strict=True)
    ]
    return np.asarray(np.matmul(*seen))


def _cut_off(x: Bounded, y: Bounded, precision: str | None, size: np.ndarray, aligned: np.ndarray) -> np.ndarray:
    """What tensor cores and their formats lose of sums with these sizes."""
    count = x.shape[-1]
    steps = 2.0**-22 * (4 + count / 8)  # one step of 8 or 16 terms after the other
    if x.dtype in FLOAT8 or y.dtype in FLOAT8:
        return aligned * (steps + _TERMS["fast_accum"] * (count**0.5 if precision == "fast_accum" else 1))
    return aligned * steps + size * _TERMS[precision]


def _contraction(x: Bounded, y: Bounded, wide: str, precision: str | None) -> Bounded:
    count, rounds, form = x.shape[-1], precision in ("tf32", "3xtf32"), FORMATS[wide]
    xs, ys = (np.where(np.isfinite(t.value), t.value, 0) for t in (x, y))
    xe, ye = (np.where(t.known, t.error, 0) for t in (x, y))
    value = np.matmul(x.value, y.value)
    # A NaN is known where the operands have it, not where finite terms overflow before they cancel.
    value = np.where(np.isnan(value) & ~np.isnan(np.matmul(special(x.value), special(y.value))), INF, value)
    size = np.matmul(np.abs(xs), np.abs(ys))
    error = np.matmul(np.abs(xs), ye) + np.matmul(xe, np.abs(ys)) + np.matmul(xe, ye)
    on_tensor_cores = rounds or x.dtype not in ("float32", "float64")
    aligned = _aligned(np.abs(xs) + xe, np.abs(ys) + ye, x.dtype, y.dtype) if on_tensor_cores else size
    # Products that are not contracted, and parts of a sum that tensor cores align, may each lose a subnormal's half.
    underflow = np.where(size < form.tiny * 2.0 ** (form.digits + 8), count * form.tiny, 0)
    bound = error + size * 2 * roundings(count, wide) + underflow
    if wide == "float32":
        bound = bound + _cut_off(x, y, precision, size, aligned)
    unit = _unit(xs, ys)
    kept = _KEPT_OF_FLOAT8 if x.dtype in FLOAT8 or y.dtype in FLOAT8 else form.digits - 2
    clean = (error == 0) & (aligned < 2.0**kept * unit) & (unit >= form.tiny)
    if precision in (None, "ieee"):
        bound = np.where(clean, 0, bound)
    # What is beyond the numbers of tf32 rounds to an infinity.
    if rounds:  # and there are 13 bits fewer below the normal ones
        bound = bound + 2.0**-136 * (np.matmul(np.abs(xs), np.ones(y.shape)) + np.matmul(np.ones(x.shape), np.abs(ys)))
    infinite = _meet(*(~(np.abs(t.value) < _TF32_END) if rounds else ~np.isfinite(t.value) for t in (x, y)))
    # An infinity times what may be zero, and the forms of tf32, in which infinities are not kept.
    unsure = _meet(~x.known, ~y.known) | (infinite & ((error > 0) | (precision not in (None, "ieee"))))
    unsure = unsure | _pair(np.isinf(x.value), may_vanish(y)) | _pair(may_vanish(x), np.isinf(y.value))
    return accumulated(value, bound, size + error, unsure, wide)

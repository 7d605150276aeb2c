"""Precisions of matrix products: their names and their arithmetic.

| precision | operands | meaning |
|---|---|---|
| `ieee` | all | products in the accumulator's type; float8 sums are kept in float32 |
| `tf32` | float32 | operands are rounded to 11 significant bits, the input precision of tensor cores |
| `3xtf32` | float32 | operands are split into sums of two tf32 numbers; the smallest of the four products is left out |
| `fast_accum` | float8 | sums stay in the tensor cores, which on Hopper keep some 14 bits of them |

A product carries its precision in the IR as the attribute `fuse.precision`: on the multiplication in the body of a
`linalg.generic`, then on the `vector.contract`. Without the attribute it is `ieee`.

The largest number of tf32 is 2^128 - 2^117: from 2^128 - 2^116 on float32 rounds to an infinity.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

IEEE, TF32, TF32X3, FAST_ACCUM = "ieee", "tf32", "3xtf32", "fast_accum"

PRECISIONS = {IEEE: None, TF32: "float32", TF32X3: "float32", FAST_ACCUM: "float8"}
"""The dtypes of each precision, by the prefix of their names; None stands for all."""

DROPPED_BITS = 13
"""Mantissa bits that float32 has more than tf32, which has 8 bits of exponent and 10 of mantissa."""


def to_tf32(values: np.ndarray, *, ties: Literal["away", "even"] = "away") -> np.ndarray:
    """float32 rounded to tf32, to nearest: ties away from zero as `cvt.rna.tf32.f32`, or to even as the TMA."""
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (DROPPED_BITS - 1))
    up = half if ties == "away" else half - 1 + (bits >> DROPPED_BITS & 1)
    finite = (bits & _EXPONENT) != _EXPONENT
    return np.where(finite, _upper_bits(bits + up), _upper_bits(np.where(np.isnan(values), bits | _QUIET, bits)))


def truncated_to_tf32(values: np.ndarray) -> np.ndarray:
    """float32 cut off to tf32, which is how tensor cores read float32 in memory."""
    return _upper_bits(values.astype(np.float32).view(np.uint32))


_EXPONENT, _QUIET = np.uint32(0x7F800000), np.uint32(0x00400000)
"""The exponent bits of a float32, all set in infinities and NaN, and the bit that is set in quiet NaNs."""


def _upper_bits(bits: np.ndarray) -> np.ndarray:
    kept = np.uint32(0xFFFFFFFF >> DROPPED_BITS << DROPPED_BITS)
    return (bits & kept).view(np.float32)

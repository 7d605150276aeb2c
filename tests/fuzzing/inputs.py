"""Inputs: shapes, dtypes, data, and how they lie in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod

import ml_dtypes
import numpy as np

from tests.fuzzing.types import FLOAT8, kind, numpy_dtype

LAYOUTS = ("contiguous", "strided", "padded", "transposed", "offset", "reversed", "broadcast")
MOST_SHOWN = 64
_SHOWN = {"separator": ", ", "threshold": 1 << 20, "max_line_width": 110, "floatmode": "unique"}
DATA = ("normal", "integers", "dyadic", "special", "positive", "wide", "equal", "extreme")


@dataclass(frozen=True)
class Input:
    """An array parameter.

    Attributes:
        name: the parameter's.
        shape: its extents.
        dtype: its element type.
        layout: one of `LAYOUTS`.
        data: one of `DATA`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: str = "contiguous"
    data: str = "normal"

    def array(self, seed: int) -> np.ndarray:
        """The array, the same for a seed and a name; strided as its layout says."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        return laid_out(values(rng, self.shape, self.dtype, self.data), self.layout)

    def text(self, seed: int) -> str:
        """Source of the array: its elements where they are few."""
        if self.layout != "contiguous" or prod(self.shape) > MOST_SHOWN:
            known = f"{self.name!r}, {self.shape}, {self.dtype!r}, {self.layout!r}, {self.data!r}"
            return f"Input({known}).array({seed})"
        array = self.array(seed)
        narrow = array.astype(np.float32) if kind(self.dtype) == "float" and self.dtype != "float64" else array
        plain = re.sub(r"\s*([,\]])", r"\1", np.array2string(narrow, **_SHOWN))
        plain = re.sub(r"\[\s+", "[", plain).replace("nan", "np.nan").replace("inf", "np.inf")
        module = "np" if hasattr(np, self.dtype) else "ml_dtypes"
        name = f"{module}.{self.dtype}" + "_" * (self.dtype == "bool")
        return f"np.array({plain}, {name}).reshape({self.shape})"

    def with_rows(self, old: int, new: int) -> Input:
        """With another leading extent, where it has that one and is no vector along rows' elements."""
        if len(self.shape) > 1 and self.shape[0] == old:
            return replace(self, shape=(new, *self.shape[1:]))
        return self


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, data: str) -> np.ndarray:
    if kind(dtype) == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind(dtype) == "int":
        return _integers(rng, shape, dtype, data)
    numbers = _floats(rng, shape, dtype, data)
    if data == "special":
        numbers = _with_special(rng, numbers, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(np.float64).astype(numpy_dtype(dtype)).reshape(shape)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, data: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    if data in ("special", "extreme"):
        array = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        chosen = rng.choice(np.array([limits.min, limits.max, 0, -1, 1], dtype), shape)
        return np.asarray(np.where(rng.random(shape) < 0.2, chosen, array), dtype)
    low = 1 if data == "positive" else 3 if data == "equal" else -9
    return np.asarray(rng.integers(low, 4 if data == "equal" else 10, shape), dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, data: str) -> np.ndarray:
    match data:
        case "integers":
            return rng.integers(-8, 9, shape).astype(float)
        case "dyadic":
            return rng.integers(-16, 17, shape) / 8
        case "positive":
            return rng.random(shape) + 0.125
        case "wide":
            return rng.normal(0, 1, shape) * 2.0 ** rng.integers(-8, 8, shape)
        case "equal":
            return np.full(shape, float(rng.choice([0.1, 1.0, -3.0, 0.7])))
        case "extreme":
            top = 6 if dtype in FLOAT8 else 13 if dtype == "float16" else 120
            return rng.normal(0, 1, shape) * 2.0 ** rng.integers(-top, top, shape)
        case _:
            return rng.normal(0, 1, shape)


def _with_special(rng: np.random.Generator, numbers: np.ndarray, dtype: str) -> np.ndarray:
    """A part of the elements are NaN, infinities, zeros of either sign, subnormal, or the largest."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny, least, most = float(info.smallest_subnormal), float(info.smallest_normal), float(info.max)
    known = [np.nan, -0.0, 0.0, tiny, -3 * tiny, least, most, -most, 1.0, -1.0]
    if dtype != "float8_e4m3fn":
        known += [np.inf, -np.inf]
    share = rng.choice([0.02, 0.3])
    return np.where(rng.random(numbers.shape) < share, rng.choice(np.array(known), numbers.shape), numbers)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same array with other strides, or at another place in its memory."""
    if array.ndim == 0 and layout != "offset":
        return array
    match layout:
        case "strided":
            base = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            view = base[..., ::2]
        case "padded":
            base = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
            view = base[..., : array.shape[-1]]
        case "transposed":
            view = np.zeros(array.shape[::-1], array.dtype).T
        case "offset":
            view = np.zeros(prod(array.shape) + 1, array.dtype)[1:].reshape(array.shape)
        case "reversed":
            base = np.zeros(array.shape, array.dtype)
            view = base[..., ::-1] if array.shape[-1] > 1 else base[::-1]
        case "broadcast":
            return np.broadcast_to(array[:1], array.shape) if array.shape[0] else array
        case _:
            return array
    view[...] = array
    return view

"""Convolutions and their gradients on bounded values: matrix products of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.ops.contraction import matmul
from tests.fuzzing.types import Refused

Ints = Sequence[int]
Pads = Sequence[Sequence[int]]


def conv(x: Bounded, w: Bounded, stride: Ints, padding: Pads, dilation: Ints) -> Bounded:
    _finite(x, w)
    taps = w.shape[1:-1]
    rows = _seen(x, lambda v: _windows(np.pad(v, ((0, 0), *padding, (0, 0))), taps, stride, dilation))
    outputs = rows.shape[: len(taps) + 1]
    columns = _seen(w, lambda v: v.reshape(len(v), -1).T)
    found = matmul(_seen(rows, lambda v: v.reshape(prod(outputs), -1)), columns)
    return _seen(found, lambda v: v.reshape(*outputs, w.shape[0]))


def conv_wgrad(x: Bounded, dy: Bounded, kernel_size: Ints, stride: Ints, padding: Pads, dilation: Ints) -> Bounded:
    _finite(x, dy)

    def rows(v: np.ndarray) -> np.ndarray:
        found = _windows(np.pad(v, ((0, 0), *padding, (0, 0))), kernel_size, stride, dilation)
        return found.reshape(prod(found.shape[: len(kernel_size) + 1]), -1)

    found = matmul(_seen(dy, lambda v: v.reshape(-1, v.shape[-1]).T), _seen(x, rows))
    return _seen(found, lambda v: v.reshape(dy.shape[-1], *kernel_size, x.shape[-1]))


def conv_dgrad(dy: Bounded, w: Bounded, input_size: Ints, stride: Ints, padding: Pads, dilation: Ints) -> Bounded:
    _finite(dy, w)
    taps = w.shape[1:-1]

    def rows(v: np.ndarray) -> np.ndarray:
        """Windows of dy with stride - 1 zeros between its pixels, from where its first tap meets the first input."""
        spread = np.zeros((len(v), *((n - 1) * s + 1 for n, s in zip(v.shape[1:-1], stride, strict=True)), v.shape[-1]))
        spread = spread.astype(v.dtype)
        spread[(slice(None), *(slice(None, None, s) for s in stride))] = v
        for axis, (n, r, d, (before, _)) in enumerate(zip(input_size, taps, dilation, padding, strict=True), 1):
            first, reach = before - (r - 1) * d, (r - 1) * d + n
            end = max(0, first + reach - spread.shape[axis])
            spread = np.pad(spread, [(max(0, -first), end) if a == axis else (0, 0) for a in range(v.ndim)])
            spread = np.take(spread, range(max(0, first), max(0, first) + reach), axis)
        found = _windows(spread, taps, (1,) * len(taps), dilation)
        return found.reshape(prod(found.shape[: len(taps) + 1]), -1)

    flipped = _seen(w, lambda v: np.moveaxis(np.flip(v, range(1, v.ndim - 1)), 0, -2).reshape(-1, v.shape[-1]))
    found = matmul(_seen(dy, rows), flipped)
    return _seen(found, lambda v: v.reshape(dy.shape[0], *input_size, w.shape[-1]))


def _finite(*operands: Bounded) -> None:
    """Which zeros are multiplied by an infinity depends on the pass and the stride (docs/convolutions.md)."""
    if not all(np.isfinite(x.value).all() and x.known.all() for x in operands):
        raise Refused("an infinity times what may be a zero outside of an image")


def _windows(x: np.ndarray, taps: Ints, stride: Ints, dilation: Ints) -> np.ndarray:
    """Windows of a padded input (N, *spatial, C): (N, *outputs, *taps, C)."""
    axes = tuple(range(1, len(taps) + 1))
    reach = tuple((r - 1) * d + 1 for r, d in zip(taps, dilation, strict=True))
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axes)  # (N, *outputs, C, *reach)
    found = found[(slice(None), *(slice(None, None, s) for s in stride))]
    found = found[(..., *(slice(None, None, d) for d in dilation))]
    return np.moveaxis(found, len(taps) + 1, -1)


def _seen(x: Bounded, view: Callable[[np.ndarray], np.ndarray]) -> Bounded:
    if x.weak is not None:
        raise Refused("a view of a number")
    return replace(x.settled, value=np.ascontiguousarray(view(x.value)), error=np.ascontiguousarray(view(x.error)))

"""Convolutions in float64 or int64 by NumPy, tap by tap, and random arguments for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import mlirfuse as mf

Pads = tuple[tuple[int, int], ...]

PASSES = (
    (mf.conv1d, mf.conv1d_wgrad, mf.conv1d_dgrad),
    (mf.conv2d, mf.conv2d_wgrad, mf.conv2d_dgrad),
    (mf.conv3d, mf.conv3d_wgrad, mf.conv3d_dgrad),
)
"""By the number of spatial dimensions, less one: the convolution, and the gradients of filters and of images."""


PARTS_OF_GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "largest of a column": lambda xp, y: xp.max(y, axis=1, keepdims=True),
    "every second row": lambda xp, y: y[:, 1::2] - y[:, ::2],
    "neighbours": lambda xp, y: y[:, :, 1:] - y[:, :, :-1],
    "channels": lambda xp, y: y[..., 0] * y[..., 1],
}
"""Of images (n, h, w, c), with a NumPy-like namespace."""


@dataclass(frozen=True)
class Case:
    """A convolution: extents with channels last, and its parameters, one entry a spatial dimension."""

    images: int
    sizes: tuple[int, ...]
    channels: int
    filters: int
    taps: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pads
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def outputs(self) -> tuple[int, ...]:
        """Spatial extents of the result."""
        return tuple(
            (n + sum(pad) - ((r - 1) * d + 1)) // s + 1
            for n, pad, r, d, s in zip(self.sizes, self.padding, self.taps, self.dilation, self.stride, strict=True)
        )

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of x, w and dy."""
        return (
            (self.images, *self.sizes, self.channels),
            (self.filters, *self.taps, self.channels // self.groups),
            (self.images, *self.outputs, self.filters),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Keyword arguments of the convolution."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}


STRIDED_GRADIENTS = [
    Case(2, sizes, 2, 3, (taps, taps), stride, ((0, 1), (1, 1)), (1, 1))
    for sizes, taps, stride in (((2, 8), 1, (2, 1)), ((4, 6), 3, (2, 2)), ((6, 4), 2, (3, 2)))
]
"""Whose pixels are gathered from their residue classes."""


def _taps(case: Case) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each tap, and the padded input's pixels that it meets."""
    for tap in product(*map(range, case.taps)):
        yield (
            tap,
            tuple(
                slice(r * d, r * d + (p - 1) * s + 1, s)
                for r, d, p, s in zip(tap, case.dilation, case.outputs, case.stride, strict=True)
            ),
        )


def _padded(case: Case, x: np.ndarray) -> np.ndarray:
    return np.pad(x, ((0, 0), *case.padding, (0, 0)))


def _by_group(case: Case, array: np.ndarray) -> np.ndarray:
    return array.reshape(*array.shape[:-1], case.groups, array.shape[-1] // case.groups)


def forward(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The result, in the arrays' dtype."""
    padded, y = _by_group(case, _padded(case, x)), np.zeros((*case.shapes[2][:-1], case.groups, 1), x.dtype)
    weights = w.reshape(case.groups, case.filters // case.groups, *w.shape[1:])
    for tap, pixels in _taps(case):
        y = y + np.einsum("...gc,gkc->...gk", padded[(slice(None), *pixels)], weights[(slice(None), slice(None), *tap)])
    return y.reshape(case.shapes[2])


def wgrad(case: Case, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """The filters' gradient, in the arrays' dtype."""
    padded, grads = _by_group(case, _padded(case, x)), _by_group(case, dy)
    dw = np.zeros((case.groups, case.filters // case.groups, *case.shapes[1][1:]), x.dtype)
    for tap, pixels in _taps(case):
        found = padded[(slice(None), *pixels)].reshape(-1, *padded.shape[-2:])
        dw[(slice(None), slice(None), *tap)] = np.einsum("igc,igk->gkc", found, grads.reshape(-1, *grads.shape[-2:]))
    return dw.reshape(case.shapes[1])


def dgrad(case: Case, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The input's gradient, in the arrays' dtype."""
    padded = _by_group(case, _padded(case, np.zeros(case.shapes[0], dy.dtype)))
    grads, weights = _by_group(case, dy), w.reshape(case.groups, case.filters // case.groups, *w.shape[1:])
    for tap, pixels in _taps(case):
        part = weights[(slice(None), slice(None), *tap)]
        padded[(slice(None), *pixels)] += np.einsum("...gk,gkc->...gc", grads, part)
    inside = tuple(slice(before, before + n) for (before, _), n in zip(case.padding, case.sizes, strict=True))
    return padded[(slice(None), *inside)].reshape(case.shapes[0])


def part_of_gradient(name: str, case: Case, dy: Any, w: Any) -> Any:
    """One of `PARTS_OF_GRADIENTS` of a data gradient in two dimensions, to be fused."""
    return PARTS_OF_GRADIENTS[name](mf, mf.conv2d_dgrad(dy, w, input_size=case.sizes, **case.parameters))


def random_case(rng: np.random.Generator, rank: int = 2, largest: int = 7) -> Case:
    """A small convolution with any parameters; the padded input holds the filter."""
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    taps = tuple(int(n) for n in rng.integers(1, 4, rank))
    dilation = tuple(int(n) for n in rng.integers(1, 4, rank))
    padding = tuple((int(a), int(b)) for a, b in rng.integers(0, 4, (rank, 2)))
    sizes = tuple(
        max(int(n), (r - 1) * d + 1 - sum(pad), 1)
        for n, r, d, pad in zip(rng.integers(1, largest + 1, rank), taps, dilation, padding, strict=True)
    )
    channels, filters = (int(n) * groups for n in rng.integers(1, 6, 2))
    stride = tuple(int(n) for n in rng.integers(1, 5, rank))
    return Case(int(rng.integers(1, 3)), sizes, channels, filters, taps, stride, padding, dilation, groups)


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small integers, of which every sum is exact."""
    return rng.integers(-4, 5, shape).astype(dtype)


@dataclass(frozen=True)
class Program:
    """A function around a convolution or one of its gradients, its arguments, and what it returns, which is exact."""

    fn: Any
    arrays: tuple[np.ndarray, ...]
    expected: np.ndarray


def random_programs(rng: np.random.Generator, rank: int, dtype: Any) -> list[Program]:
    """A convolution and both gradients in either layout, perhaps with "same" padding, between elementwise ops and sums.

    Values are -1, 0 and 1, so that all results are exact, but for the last rounding of long sums in half precision.
    """
    case, same, first = random_case(rng, rank, 6 if rank < 3 else 4), rng.random() < 0.3, rng.random() < 0.4
    case = replace(case, padding=_same_padding(case)) if same else case
    p = case.parameters | ({"padding": "same"} if same else {}) | ({"layout": "NCHW"} if first else {})
    x, w, dy = (rng.integers(-1, 2, shape) for shape in case.shapes)
    convolve, of_filters, of_images = PASSES[rank - 1]
    ways = (
        (lambda x, w: convolve(x, w, **p), (x, w), forward(case, x, w)),
        (lambda x, dy: of_filters(x, dy, kernel_size=case.taps, **p), (x, dy), wgrad(case, x, dy)),
        (lambda dy, w: of_images(dy, w, input_size=case.sizes, **p), (dy, w), dgrad(case, dy, w)),
    )
    return [_around(rng, *way, dtype, rank if first else 0) for way in ways]


def _around(
    rng: np.random.Generator, fn: Any, arrays: tuple[np.ndarray, ...], result: np.ndarray, dtype: Any, moved: int
) -> Program:
    """The convolution with what is drawn before and behind it; with `moved` spatial dimensions behind the channels."""
    order = (0, moved + 1, *range(1, moved + 1)) if moved else tuple(range(result.ndim))
    x, other = (np.ascontiguousarray(a.transpose(order)).astype(dtype) for a in arrays)
    y = np.ascontiguousarray(result.transpose(order)).astype(dtype)
    channels = (-1, *[1] * moved)
    row = rng.integers(-1, 2, y.shape[1 if moved else -1]).astype(dtype).reshape(channels)
    full = rng.integers(-1, 2, y.shape).astype(dtype)
    others = tuple(d for d in range(y.ndim) if d != (1 if moved else y.ndim - 1))
    behind = (
        lambda xp, y, row, full: y,
        lambda xp, y, row, full: xp.maximum(y + row, 0),
        lambda xp, y, row, full: y * row + full,
        lambda xp, y, row, full: xp.sum(y, axis=others),
        lambda xp, y, row, full: xp.max(y + full, axis=others[-1]),
        lambda xp, y, row, full: xp.sum(xp.maximum(y, full)),
    )[rng.integers(6)]
    pending = rng.random() < 0.3

    def program(x: Any, other: Any, row: Any, full: Any) -> Any:
        same = mf.where(x > 0, x, mf.minimum(x, 0)) if pending else x
        return behind(mf, fn(same, other), row, full)

    return Program(program, (x, other, row, full), np.asarray(behind(np, y, row, full)))


def _same_padding(case: Case) -> Pads:
    """What makes the result's extents the quotients of the input's and the strides, the odd pixel behind."""
    sums = [
        max(0, (-(-n // s) - 1) * s + (r - 1) * d + 1 - n)
        for n, r, d, s in zip(case.sizes, case.taps, case.dilation, case.stride, strict=True)
    ]
    return tuple((n // 2, n - n // 2) for n in sums)


def passes(case: Case, dtype: Any) -> dict[str, tuple[Callable[..., Any], tuple[int, int], Callable[..., np.ndarray]]]:
    """Each pass: the function, which of x, w and dy it takes, and its reference, which computes in whole numbers."""
    p = case.parameters | {"dtype": dtype}
    convolve, of_filters, of_images = PASSES[len(case.sizes) - 1]
    return {
        "forward": (lambda x, w: convolve(x, w, **p), (0, 1), forward),
        "wgrad": (lambda x, dy: of_filters(x, dy, kernel_size=case.taps, **p), (0, 2), wgrad),
        "dgrad": (lambda dy, w: of_images(dy, w, input_size=case.sizes, **p), (2, 1), dgrad),
    }


def channels_first_block(x: Any, w: Any, s: Any) -> Any:
    """Two 3 x 3 convolutions with the channels first, and what is computed between them."""
    y = mf.maximum(mf.conv2d(x, w, padding=1, layout="NCHW") * s, 0)
    return mf.minimum(mf.conv2d(y, w, padding=1, layout="NCHW") + s, 3)


def reference_block(x: np.ndarray, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    """What `channels_first_block` gives of whole numbers: x (n, c, h, w), w (c, c, 3, 3), s (c, 1, 1)."""
    images, channels, *sizes = x.shape
    case = Case(images, tuple(sizes), channels, channels, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
    last = (0, 2, 3, 1)
    filters, factors = w.transpose(last).astype(np.int64), s[:, 0, 0].astype(np.int64)
    between = np.maximum(forward(case, x.transpose(last).astype(np.int64), filters) * factors, 0)
    return np.minimum(forward(case, between, filters) + factors, 3).transpose(0, 3, 1, 2)

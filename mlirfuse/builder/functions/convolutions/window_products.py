"""Emits convolutions: gathered views of windows, and the sums of products over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.emission.gather import gathered
from mlirfuse.builder.functions.convolutions.windows import Window
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, sum_of_products
from mlirfuse.builder.state import TensorBase

ACCESS = 8
"""Bytes of an access, from which on copies of windows are fast: `cp.async` copies 4, 8 or 16."""


@dataclass(frozen=True)
class Problem:
    """The extents of a convolution.

    Attributes:
        images: number of images.
        channels: channels of the input, of all groups.
        filters: number of filters, which are channels of the output.
        windows: the spatial dimensions.
        groups: number of groups.
    """

    images: int
    channels: int
    filters: int
    windows: tuple[Window, ...]
    groups: int

    @property
    def outputs(self) -> tuple[int, ...]:
        """Spatial extents of the output."""
        return tuple(window.outputs for window in self.windows)

    @property
    def taps(self) -> tuple[int, ...]:
        """Spatial extents of the filter."""
        return tuple(window.taps for window in self.windows)

    @property
    def group(self) -> tuple[int, ...]:
        """The extent of the groups' dimension; none for a single group."""
        return (self.groups,) if self.groups > 1 else ()


def forward(problem: Problem, x: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
    """The unrounded output (n, p..., g, k); x has shape (n, h..., c) and w (k, r..., c)."""
    rank, grouped = len(problem.windows), len(problem.group)
    images = _windows(problem, x)
    channels, filters = problem.channels // problem.groups, problem.filters // problem.groups
    weights = reshape_to(w, (*problem.group, filters, *problem.taps, channels))
    shape = (problem.images, *problem.outputs, *problem.group, filters)
    kept = tuple(range(rank + 1 + grouped))
    summed = tuple(range(len(shape), len(shape) + rank + 1))
    group = kept[rank + 1 :]
    accesses = ((*kept, *summed), (*group, len(shape) - 1, *summed))
    inputs = list(zip((images, weights), accesses, strict=True))
    return sum_of_products(inputs, shape, len(shape) + rank + 1, types)


def wgrad(problem: Problem, x: TensorBase, dy: TensorBase, types: ProductTypes) -> TensorBase:
    """The unrounded gradient (g, k, r..., c) of filters; x has shape (n, h..., c) and dy (n, p..., k)."""
    rank, grouped = len(problem.windows), len(problem.group)
    images = _windows(problem, x)
    channels, filters = problem.channels // problem.groups, problem.filters // problem.groups
    grads = reshape_to(dy, (problem.images, *problem.outputs, *problem.group, filters))
    shape = (*problem.group, filters, *problem.taps, channels)
    group, inner = tuple(range(grouped)), tuple(range(grouped + 1, len(shape)))
    summed = tuple(range(len(shape), len(shape) + rank + 1))
    accesses = ((*summed, *group, grouped), (*summed, *group, *inner))
    inputs = list(zip((grads, images), accesses, strict=True))
    return sum_of_products(inputs, shape, len(shape) + rank + 1, types)


def with_channels(tensor: TensorBase, channels: int) -> TensorBase:
    """A copy with so many channels: zeros behind the last one, or fewer."""
    extents = (*(extent for extent in tensor.shape[:-1] if isinstance(extent, int)), channels)
    view = gathered(tensor, extents, list)
    access = tuple(range(len(extents)))
    return pointwise(tensor.state, [(view, access)], extents, tensor.dtype, lambda element: element)


def _windows(problem: Problem, x: TensorBase) -> TensorBase:
    """The windows (n, p..., g, r..., c) of images (n, h..., c)."""
    channels = problem.channels // problem.groups
    extents = (problem.images, *problem.outputs, *problem.group, *problem.taps, channels)
    if is_pointwise(problem):
        return reshape_to(x, extents)

    def indices(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        image, *inner = at
        pixels, taps = inner[: len(problem.windows)], inner[-1 - len(problem.windows) : -1]
        places = [
            p * w.stride + r * w.dilation - w.before for p, r, w in zip(pixels, taps, problem.windows, strict=True)
        ]
        return [image, *places, group_channel(problem, at[1 + len(pixels)], channels, at[-1])]

    return gathered(x, extents, indices)


def is_pointwise(problem: Problem) -> bool:
    """Whether each window is its output's one pixel, so that nothing need be gathered."""
    return all(w.taps == 1 == w.stride and not w.before and not w.after for w in problem.windows)


def group_channel(problem: Problem, group: ir.AffineExpr, size: int, channel: ir.AffineExpr) -> ir.AffineExpr:
    """The channel of all groups; `group` is only used where there are several."""
    return group * size + channel if problem.groups > 1 else channel

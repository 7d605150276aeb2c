"""Convolutions of few channels with strides, whose windows are read as rows of taps and channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.emission.gather import gathered
from mlirfuse.builder.functions.convolutions.window_products import ACCESS, Problem
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, sum_of_products
from mlirfuse.builder.state import TensorBase

WIDEST = 16
"""Bytes of the widest access."""


@dataclass(frozen=True)
class WindowRows:
    """How the last spatial dimension and the channels of images are copied as one.

    In the copy, neighbouring taps of a window are neighbours in memory, and windows begin at multiples of the widest
    access: what a window has of a row is one run. Zeros stand for channels that there are not, and for the padding.

    Attributes:
        problem: the convolution.
        channels: channels of a pixel in the copy.
        run: elements of a window's row, in whole widest accesses; taps behind the last one meet filters of zeros.
        pixels: of a row of the copy.
    """

    problem: Problem
    channels: int
    run: int
    pixels: int

    def images(self, x: TensorBase) -> TensorBase:
        """The windows (n, p..., r..., run) of images (n, h..., c): the last spatial dimension has no taps."""
        *outer, last = self.problem.windows
        sizes = (self.problem.images, *(w.size for w in outer), self.pixels, self.channels)
        wide = _copy(x, sizes, lambda at: [*at[:-2], at[-2] - last.before, at[-1]])
        rows = reshape_to(wide, (*sizes[:-2], self.pixels * self.channels))
        rank = len(self.problem.windows)

        def indices(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
            pixels, taps = at[1 : 1 + rank], at[1 + rank : -1]
            places = [
                p * w.stride + r * w.dilation - w.before for p, r, w in zip(pixels[:-1], taps, outer, strict=True)
            ]
            return [at[0], *places, pixels[-1] * (last.stride * self.channels) + at[-1]]

        return gathered(rows, (self.problem.images, *self.problem.outputs, *self.problem.taps[:-1], self.run), indices)

    def filters(self, w: TensorBase) -> TensorBase:
        """A copy (k, r..., run) of filters (k, r..., s, c)."""

        def indices(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
            *outer, place = at
            tap = ir.AffineExpr.get_floor_div(place, self.channels)
            return [*outer, tap, ir.AffineExpr.get_mod(place, self.channels)]

        return _copy(w, (self.problem.filters, *self.problem.taps[:-1], self.run), indices)

    def apart(self, gradient: TensorBase) -> TensorBase:
        """A copy (k, r..., s, c) of the gradient (k, r..., run) of filters."""
        extents = (self.problem.filters, *self.problem.taps, self.problem.channels)
        return _copy(gradient, extents, lambda at: [*at[:-2], at[-2] * self.channels + at[-1]])

    def forward(self, x: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
        """The unrounded output (n, p..., k)."""
        rank = len(self.problem.windows)
        shape = (self.problem.images, *self.problem.outputs, self.problem.filters)
        kept, summed = tuple(range(rank + 1)), tuple(range(rank + 2, 2 * rank + 2))
        inputs = [(self.images(x), (*kept, *summed)), (self.filters(w), (rank + 1, *summed))]
        return sum_of_products(inputs, shape, 2 * rank + 2, types)

    def wgrad(self, x: TensorBase, dy: TensorBase, types: ProductTypes) -> TensorBase:
        """The unrounded gradient (k, r..., c) of filters."""
        rank = len(self.problem.windows)
        shape = (self.problem.filters, *self.problem.taps[:-1], self.run)
        columns, summed = tuple(range(1, rank + 1)), tuple(range(rank + 1, 2 * rank + 2))
        inputs = [(dy, (*summed, 0)), (self.images(x), (*summed, *columns))]
        return self.apart(sum_of_products(inputs, shape, 2 * rank + 2, types))


def window_rows(problem: Problem, channels: int, element_bytes: int) -> WindowRows | None:
    """The rows of windows of images that are copied with so many channels; None where they begin at no widest access,
    or pixels fill one.

    Args:
        problem: the convolution.
        channels: channels of a pixel in the copy, of at least `ACCESS` bytes.
        element_bytes: of an element of the images.
    """
    last, whole = problem.windows[-1], max(1, WIDEST // element_bytes)
    pixel = channels * element_bytes
    if problem.groups > 1 or last.dilation > 1 or last.taps == 1 or not ACCESS <= pixel < WIDEST:
        return None
    if last.stride * pixel % WIDEST:
        return None
    run = -(-last.taps * channels // whole) * whole
    pixels = (last.outputs - 1) * last.stride + -(-run // channels)
    while pixels * channels % whole:
        pixels += 1
    return WindowRows(problem, channels, run, pixels)


def _copy(
    tensor: TensorBase, extents: tuple[int, ...], indices: Callable[[Sequence[ir.AffineExpr]], list[ir.AffineExpr]]
) -> TensorBase:
    view = gathered(tensor, extents, indices)
    return pointwise(tensor.state, [(view, tuple(range(len(extents))))], extents, tensor.dtype, lambda element: element)

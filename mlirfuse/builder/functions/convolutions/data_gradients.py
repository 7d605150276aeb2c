"""Emits data gradients of convolutions: by residue classes of the pixel, where there are strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod

from mlir import ir

from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.emission.gather import gathered
from mlirfuse.builder.functions.casting import cast
from mlirfuse.builder.functions.convolutions.window_products import (
    ACCESS,
    Problem,
    group_channel,
    with_channels,
)
from mlirfuse.builder.functions.convolutions.windows import Window
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, sum_of_products
from mlirfuse.builder.state import TensorBase

Indices = Sequence[ir.AffineExpr]


def dgrad(problem: Problem, dy: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
    """The images' gradient (n, h..., c), rounded; dy has shape (n, p..., k) and w (k, r..., c).

    With strides, pixels fall into residue classes modulo the stride, and each class only meets every so many taps, so
    that dy is not multiplied with zeros inserted. Without dilation all classes meet the same outputs, and are columns
    of one product, as the pixels of a patch are. Otherwise they are a batch of products. A view puts their pixels in
    order, and leaves out channels of zeros that filters were copied with.
    """
    sizes = (problem.images, *(window.size for window in problem.windows), problem.channels)
    strided = any(window.stride > 1 for window in problem.windows)
    whole, patches = max(1, ACCESS // w.dtype.bytes), all(_classes(w) == w.taps for w in problem.windows)
    if strided and not patches and problem.groups == 1 and problem.channels % whole:
        wide = -(-problem.channels // whole) * whole
        problem, w = replace(problem, channels=wide), with_channels(w, wide)
    if all(map(_meet_the_same, problem.windows)):
        return _columns(problem, sizes, dy, w, types)
    return _batch(problem, sizes, dy, w, types)


def _meet_the_same(window: Window) -> bool:
    """Whether all residue classes meet the same outputs, by a tap of their own or past the filter's end."""
    return 1 in (window.stride, window.dilation, window.taps)


def _classes(window: Window) -> int:
    """The residue classes that have columns: where the filter's size divides the stride, those that meet a tap."""
    return window.taps if window.stride % window.taps == 0 else window.stride


def _columns(
    problem: Problem, sizes: tuple[int, ...], dy: TensorBase, w: TensorBase, types: ProductTypes
) -> TensorBase:
    """`dgrad` as one product, of which each residue class has columns.

    Pixel a + stride * h - shift of class a meets its j-th tap, a + stride * j, in output
    h - j + (before - shift) / stride, where shift is the padding modulo the stride. So dy's windows are the same for
    all classes. Classes that meet no tap are the view's zeros, past the end of the sums' classes.
    """
    windows, rank, grouped = problem.windows, len(problem.windows), len(problem.group)
    strided = any(window.stride > 1 for window in windows)
    residues = tuple(map(_classes, windows)) if strided else ()
    shifts = [window.before % window.stride for window in windows]
    pixels = tuple(
        (window.size + shift - 1) // window.stride + 1 for window, shift in zip(windows, shifts, strict=True)
    )
    patches = all(_classes(window) == window.taps for window in windows)  # one tap a class, which is then no loop
    taps = () if patches else tuple(-(-window.taps // window.stride) for window in windows)
    channels, filters = problem.channels // problem.groups, problem.filters // problem.groups

    def grads(at: Indices) -> list[ir.AffineExpr]:
        image, pixel, tap = at[0], at[1 : 1 + rank], at[-1 - len(taps) : -1]
        places = [h + window.before // window.stride for h, window in zip(pixel, windows, strict=True)]
        if not patches:
            places = [place - j * window.dilation for place, j, window in zip(places, tap, windows, strict=True)]
        return [image, *places, group_channel(problem, at[1 + rank], filters, at[-1])]

    def weights(at: Indices) -> list[ir.AffineExpr]:
        tap, (filter_, *residue, channel) = at[grouped : grouped + rank], at[grouped + rank :]
        places = [j * window.stride for j, window in zip(tap, windows, strict=True)]
        if strided:
            places = [place + a for place, a in zip(places, residue, strict=True)]
        return [group_channel(problem, at[0], filters, filter_), *places, channel]

    rows, columns = (problem.images, *pixels), (*residues, channels)
    plain = patches and pixels == problem.outputs and all(window.before < window.stride for window in windows)
    if plain and strided:  # no pixel is gathered, and no loops of one role need be joined
        rows, columns = (prod(rows),), (prod(columns),)
    of_grads, of_weights = (*rows, *problem.group, *taps, filters), (*problem.group, *taps, filters, *columns)
    left: TensorBase = reshape_to(dy, of_grads) if plain else gathered(dy, of_grads, grads)
    right: TensorBase = reshape_to(w, of_weights) if patches else gathered(w, of_weights, weights)
    shape = (*rows, *problem.group, *columns)
    loops, end = tuple(range(len(shape) + len(taps) + 1)), len(rows) + grouped
    of_rows, group, of_columns, summed = (
        loops[: len(rows)],
        loops[len(rows) : end],
        loops[end : len(shape)],
        loops[len(shape) :],
    )
    inputs = [(left, (*of_rows, *group, *summed)), (right, (*group, *summed, *of_columns))]
    sums = cast(sum_of_products(inputs, shape, len(loops), types), types.result)
    if not strided:
        return reshape_to(sums, sizes)

    def ordered(at: Indices) -> list[ir.AffineExpr]:
        image, *places, channel = at
        moved = [h + shift for h, shift in zip(places, shifts, strict=True)]
        return [
            image,
            *(ir.AffineExpr.get_floor_div(h, window.stride) for h, window in zip(moved, windows, strict=True)),
            *([ir.AffineExpr.get_floor_div(channel, channels)] if grouped else []),
            *(ir.AffineExpr.get_mod(h, window.stride) for h, window in zip(moved, windows, strict=True)),
            ir.AffineExpr.get_mod(channel, channels) if grouped else channel,
        ]

    classes = reshape_to(sums, (problem.images, *pixels, *problem.group, *residues, channels))
    return _in_order(classes, sizes, types, ordered)


def _batch(problem: Problem, sizes: tuple[int, ...], dy: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
    """`dgrad` as a product for each residue class."""
    rank, grouped = len(problem.windows), len(problem.group)
    classes = [_Residues(window) for window in problem.windows]
    residues, pixels = tuple(c.count for c in classes), tuple(c.pixels for c in classes)
    taps = tuple(c.taps for c in classes)
    channels, filters = problem.channels // problem.groups, problem.filters // problem.groups

    def grads(at: Indices) -> list[ir.AffineExpr]:
        image, group, last = at[rank], at[rank + 1 + rank], at[-1]
        found = zip(classes, at[:rank], at[rank + 1 : rank + 1 + rank], at[-1 - rank : -1], strict=True)
        return [image, *(c.output(a, h, j) for c, a, h, j in found), group_channel(problem, group, filters, last)]

    def weights(at: Indices) -> list[ir.AffineExpr]:
        found = zip(classes, at[:rank], at[rank + grouped : rank + grouped + rank], strict=True)
        return [group_channel(problem, at[rank], filters, at[-2]), *(c.tap(a, j) for c, a, j in found), at[-1]]

    left = gathered(dy, (*residues, problem.images, *pixels, *problem.group, *taps, filters), grads)
    right = gathered(w, (*residues, *problem.group, *taps, filters, channels), weights)
    # Loops: residues, group, image, pixels, channel; taps, filter.
    shape = (*residues, *problem.group, problem.images, *pixels, channels)
    ahead, group = tuple(range(rank)), tuple(range(rank, rank + grouped))
    pixel_loops = tuple(range(rank + grouped, rank + grouped + 1 + rank))
    summed = tuple(range(len(shape), len(shape) + rank + 1))
    inputs = [(left, (*ahead, *pixel_loops, *group, *summed)), (right, (*ahead, *group, *summed, len(shape) - 1))]
    sums = cast(sum_of_products(inputs, shape, len(shape) + rank + 1, types), types.result)

    def ordered(at: Indices) -> list[ir.AffineExpr]:
        image, *places, channel = at
        return [
            *(ir.AffineExpr.get_mod(h, count) for h, count in zip(places, residues, strict=True)),
            *([ir.AffineExpr.get_floor_div(channel, channels)] if grouped else []),
            image,
            *(ir.AffineExpr.get_floor_div(h, count) for h, count in zip(places, residues, strict=True)),
            ir.AffineExpr.get_mod(channel, channels) if grouped else channel,
        ]

    return _in_order(sums, sizes, types, ordered)


def _in_order(
    sums: TensorBase, sizes: tuple[int, ...], types: ProductTypes, ordered: Callable[[Indices], list[ir.AffineExpr]]
) -> TensorBase:
    """A copy of the sums of all classes in the order of pixels; `ordered` maps an index of it to one of the sums."""
    view, access = gathered(sums, sizes, ordered), tuple(range(len(sizes)))
    return pointwise(view.state, [(view, access)], sizes, types.result, lambda element: element)


class _Residues:
    """One spatial dimension of a data gradient, by residue classes of the pixel modulo the stride.

    Pixel a + stride * h of class a meets the taps first(a) + j * step, and with tap r the output
    (a + stride * h + before - r * dilation) / stride. Indices that do not exist are moved out of bounds, where a
    gathered view is zero.

    Attributes:
        count: number of classes: the stride.
        pixels: pixels of a class, at most.
        taps: taps that a pixel meets, at most.
    """

    def __init__(self, window: Window):
        self.window = window
        self.count = window.stride
        self._common = gcd(window.stride, window.dilation)
        self._step = window.stride // self._common
        self._inverse = pow(window.dilation // self._common, -1, self._step) if self._step > 1 else 0
        self.pixels = -(-window.size // window.stride)
        self.taps = -(-window.taps // self._step)

    def tap(self, a: ir.AffineExpr, j: ir.AffineExpr) -> ir.AffineExpr:
        """The j-th tap that class a meets; past the filter's end where there are fewer."""
        place = self._first(a) + j * self._step
        if self._common > 1:
            place = place + ir.AffineExpr.get_mod(a + self.window.before, self._common) * self.window.taps
        return place

    def output(self, a: ir.AffineExpr, h: ir.AffineExpr, j: ir.AffineExpr) -> ir.AffineExpr:
        """The output that pixel h of class a meets with its j-th tap; past the end where there is none."""
        window, far = self.window, self.window.outputs + self.window.reach + self.window.stride
        start = ir.AffineExpr.get_floor_div(a + window.before - self._first(a) * window.dilation, window.stride)
        place = h - j * (window.dilation // self._common) + start
        if window.taps % self._step:
            tap = self._first(a) + j * self._step
            place = place + ir.AffineExpr.get_floor_div(tap, window.taps) * far
        if self._common > 1:
            place = place + ir.AffineExpr.get_mod(a + window.before, self._common) * far
        return place

    def _first(self, a: ir.AffineExpr) -> ir.AffineExpr:
        if self._step == 1:
            return ir.AffineExpr.get_constant(0)
        part = ir.AffineExpr.get_floor_div(a + self.window.before, self._common)
        return ir.AffineExpr.get_mod(part * self._inverse, self._step)

"""Emits convolutions: gathered views of windows, and the sums of products over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from mlir import ir

from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.functions.casting import cast
from mlirfuse.builder.functions.convolutions.windows import Window
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, sum_of_products
from mlirfuse.builder.state import TensorBase
from mlirfuse.dialect.gathered_view import Gather, gathered_view

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
    wide = _accessible_channels(problem, x)
    if wide != problem.channels:
        return forward(replace(problem, channels=wide), _with_channels(x, wide), _with_channels(w, wide), types)
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
    wide = _accessible_channels(problem, x)
    if wide != problem.channels:
        gradient = wgrad(replace(problem, channels=wide), _with_channels(x, wide), dy, types)
        return _with_channels(gradient, problem.channels)
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


def _accessible_channels(problem: Problem, x: TensorBase) -> int:
    """Channels that the input is copied with, so that products gather it in 8 bytes at least.

    Each tap reads the input again, mostly from a cache, in as many accesses as the copies are narrow. One copy with
    channels of zeros costs a single pass. Patches whose pixels are neighbours, and groups, are left as they are.
    """
    whole = max(1, ACCESS // x.dtype.bytes)
    windows = problem.windows
    apart = windows[-1].dilation > 1 or windows[-1].before > 0 or windows[-1].after > 0
    overlap = any(w.taps > w.stride for w in windows)
    if problem.groups > 1 or problem.channels % whole == 0 or not (apart or overlap) or prod(problem.taps) == 1:
        return problem.channels
    return -(-problem.channels // whole) * whole


def _with_channels(tensor: TensorBase, channels: int) -> TensorBase:
    """A copy with so many channels: zeros behind the last one, or fewer."""
    extents = (*(extent for extent in tensor.shape[:-1] if isinstance(extent, int)), channels)
    view = _gathered(tensor, extents, list)
    access = tuple(range(len(extents)))
    return pointwise(tensor.state, [(view, access)], extents, tensor.dtype, lambda element: element)


def _windows(problem: Problem, x: TensorBase) -> TensorBase:
    """The windows (n, p..., g, r..., c) of images (n, h..., c)."""
    channels = problem.channels // problem.groups
    extents = (problem.images, *problem.outputs, *problem.group, *problem.taps, channels)
    if _is_pointwise(problem):
        return reshape_to(x, extents)

    def indices(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        image, *inner = at
        pixels, taps = inner[: len(problem.windows)], inner[-1 - len(problem.windows) : -1]
        places = [
            p * w.stride + r * w.dilation - w.before for p, r, w in zip(pixels, taps, problem.windows, strict=True)
        ]
        return [image, *places, _channel(problem, at[1 + len(pixels)], channels, at[-1])]

    return _gathered(x, extents, indices)


def _is_pointwise(problem: Problem) -> bool:
    """Whether each window is its output's one pixel, so that nothing need be gathered."""
    return all(w.taps == 1 == w.stride and not w.before and not w.after for w in problem.windows)


def dgrad(problem: Problem, dy: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
    """The images' gradient (n, h..., c), rounded; dy has shape (n, p..., k) and w (k, r..., c).

    With strides, pixels fall into residue classes modulo the stride, and each class only meets every so many taps. The
    classes are a batch of products, so no product with an inserted zero is made; a view puts their pixels in order, and
    leaves out channels of zeros that filters were copied with.
    """
    sizes = (problem.images, *(window.size for window in problem.windows), problem.channels)
    strided = any(window.stride > 1 for window in problem.windows)
    whole = max(1, ACCESS // w.dtype.bytes)
    if strided and problem.groups == 1 and problem.channels % whole:
        wide = -(-problem.channels // whole) * whole
        problem, w = replace(problem, channels=wide), _with_channels(w, wide)
    rank, grouped = len(problem.windows), len(problem.group)
    classes = [_Residues(window) for window in problem.windows]
    residues = tuple(c.count for c in classes) if strided else ()
    pixels, taps = tuple(c.pixels for c in classes), tuple(c.taps for c in classes)
    channels, filters = problem.channels // problem.groups, problem.filters // problem.groups
    many = len(residues)

    def split(at: Sequence[ir.AffineExpr]) -> Sequence[ir.AffineExpr]:
        zero = ir.AffineExpr.get_constant(0)
        return at[:many] if strided else [zero] * rank

    def grads(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        image, group, last = at[many], at[many + 1 + rank], at[-1]
        pixel, tap = at[many + 1 : many + 1 + rank], at[-1 - rank : -1]
        found = zip(classes, split(at), pixel, tap, strict=True)
        return [image, *(c.output(a, h, j) for c, a, h, j in found), _channel(problem, group, filters, last)]

    def weights(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        tap, filter_, channel = at[many + grouped : many + grouped + rank], at[-2], at[-1]
        found = zip(classes, split(at), tap, strict=True)
        return [_channel(problem, at[many], filters, filter_), *(c.tap(a, j) for c, a, j in found), channel]

    of_grads = (*residues, problem.images, *pixels, *problem.group, *taps, filters)
    of_weights = (*residues, *problem.group, *taps, filters, channels)
    left: TensorBase
    right: TensorBase
    if _is_pointwise(problem):
        left, right = reshape_to(dy, of_grads), reshape_to(w, of_weights)
    else:
        left, right = _gathered(dy, of_grads, grads), _gathered(w, of_weights, weights)
    # Loops: residues, group, image, pixels, channel; taps, filter. One class leaves the groups behind the pixels.
    outer = (*residues, problem.images, *pixels)
    ahead = tuple(range(many + grouped)) if strided else ()
    if strided:
        shape: tuple[int, ...] = (*residues, *problem.group, problem.images, *pixels, channels)
        group = ahead[many:]
        pixel_loops = tuple(range(many + grouped, many + grouped + 1 + rank))
    else:
        shape = (*outer, *problem.group, channels)
        pixel_loops = tuple(range(1 + rank))
        group = tuple(range(1 + rank, 1 + rank + grouped))
    summed = tuple(range(len(shape), len(shape) + rank + 1))
    left_access = (*ahead[:many], *pixel_loops, *group, *summed)
    right_access = (*ahead[:many], *group, *summed, len(shape) - 1)
    inputs = [(left, left_access), (right, right_access)]
    sums = cast(sum_of_products(inputs, shape, len(shape) + rank + 1, types), types.result)
    if not strided:
        return reshape_to(sums, sizes)

    def ordered(at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        image, *places, channel = at
        residue = [ir.AffineExpr.get_mod(h, c.count) for h, c in zip(places, classes, strict=True)]
        pixel = [ir.AffineExpr.get_floor_div(h, c.count) for h, c in zip(places, classes, strict=True)]
        inside = [channel]
        if grouped:
            inside = [ir.AffineExpr.get_mod(channel, channels)]
            residue.append(ir.AffineExpr.get_floor_div(channel, channels))
        return [*residue, image, *pixel, *inside]

    view = _gathered(sums, sizes, ordered)
    access = tuple(range(len(sizes)))
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


def _channel(problem: Problem, group: ir.AffineExpr, size: int, channel: ir.AffineExpr) -> ir.AffineExpr:
    """The channel of all groups; `group` is only used where there are several."""
    return group * size + channel if problem.groups > 1 else channel


def _gathered(
    source: TensorBase,
    extents: tuple[int, ...],
    indices: Callable[[Sequence[ir.AffineExpr]], list[ir.AffineExpr]],
) -> TensorBase:
    """A view of a tensor with these extents; `indices` maps an index of the view to one of the source."""
    with source.state.emitting():
        at = [ir.AffineExpr.get_dim(d) for d in range(len(extents))]
        gather = Gather(tuple((n,) for n in extents), ir.AffineMap.get(len(extents), 0, indices(at)))
        value = gathered_view(source.value, gather)
        source.state.number(value.owner.operation)
    return source.state.wrap(value, extents, source.dtype)

"""Views of one array that a kernel reads at every element of its space: the windows of a stencil."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import floor, prod
from typing import NamedTuple

from mlir import ir

from mlirfuse.dialect.gather_attribute import GATHER
from mlirfuse.dialect.gathered_view import Gather, gather_of, source_of
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.support.affine_expressions import bounds, coefficients, operands, single_dim, unwrapped
from mlirfuse.support.strides import entries_of, row_major

Place = tuple[int, int | Fraction, int]
"""A dimension of a view, the step along an axis of the source to the next one, and the first one's index. A step is
below 1 where several neighbours read the same element."""


def places_of(known: dict[str, ir.Attribute]) -> list[Place] | None:
    """Where a gathered view lies along each axis of its source, by the attributes of the argument; None where it is no
    gathered view, or an axis of a contiguous source is not read along one dimension of the view.

    An axis of which a view has a single index is one with the axis before it (`merged_extents`).
    """
    gather = _undivided(known)
    if gather is None:
        return None
    places = list[Place]()
    for (expr, _), *single in _merged_axes(gather, source_of(ir.DictAttr(known[GATHER])).shape):
        place = _place(unwrapped(expr, gather.components), len(gather.components))
        if place is None or place[1] <= 0:
            return None
        dim, step, first = place
        for index, extent in single:
            step, first = step * extent, first * extent + ir.AffineConstantExpr(index).value
        places.append((dim, step, first))
    return places if len(places) == len(_dims(places, gather)) else None


def merged_extents(known: dict[str, ir.Attribute]) -> list[int]:
    """The extents of a gathered view's source along the axes that its places are of (`places_of`)."""
    entries = ir.DictAttr(known[GATHER])
    axes = _merged_axes(gather_of(entries), source_of(entries).shape)
    return [prod(extent for _, extent in each) for each in axes]


def _merged_axes(gather: Gather, shape: Sequence[int]) -> list[list[tuple[ir.AffineExpr, int]]]:
    """The index along each axis of a view's source, and the axis's extent: an axis with those of a single index behind
    it.
    """
    merged = list[list[tuple[ir.AffineExpr, int]]]()
    for expr, extent in zip(gather.map.results, shape, strict=True):
        if isinstance(expr, ir.AffineConstantExpr) and merged:
            merged[-1].append((expr, extent))
        else:
            merged.append([(expr, extent)])
    return merged


def _place(expr: ir.AffineExpr, dims: int) -> Place | None:
    """Where an expression lies that is linear in one dimension, or such a one divided by a number; None for others."""
    if (place := single_dim(expr, dims)) is not None:
        return place
    first = 0
    if isinstance(expr, ir.AffineAddExpr):
        left, right = operands(expr)
        if not isinstance(right, ir.AffineConstantExpr):
            return None
        expr, first = left.maybe_downcast(), ir.AffineConstantExpr(right).value
    if not isinstance(expr, ir.AffineFloorDivExpr):
        return None
    divided, by = operands(expr)
    place, number = single_dim(divided.maybe_downcast(), dims), coefficients(by, dims)
    if place is None or number is None or any(number[0]):
        return None
    dim, step, start = place
    return dim, Fraction(step, number[1]), first + start // number[1]


def _dims(places: Sequence[Place], gather: Gather) -> set[int]:
    dims = {dim for dim, _, _ in places}
    return dims if len(dims) == len(gather.basis) else set()


def windows_access(
    extents: Sequence[int],
    nbytes: int,
    views: Sequence[Sequence[Place]],
    axes: Sequence[int | None],
    alignment: int,
) -> ArrayAccess | None:
    """Views of one contiguous array as windows; None where they lie apart in more than their first elements.

    Args:
        extents: of the array, along the axes of the views' places.
        nbytes: of an element.
        views: each one's places.
        axes: the dimension of the kernel's space that runs along each dimension of the views.
        alignment: bytes that the array's address is a multiple of.
    """
    steps = {tuple(place[:2] for place in view) for view in views}
    if len(views) < 2 or len(steps) != 1:
        return None
    dims, strides, windows = [], [], []
    kept = [axis for axis, (dim, _, _) in enumerate(views[0]) if axes[dim] is not None]
    for axis, (dim, step, _) in enumerate(views[0]):
        along = axes[dim]
        offsets = tuple(sorted({view[axis][2] for view in views}))
        if along is None and len(offsets) > 1:
            return None
        if along is not None:
            dims.append(along)
            strides.append(max(1, floor(step)) * prod(extents[axis + 1 :]))
            windows.append((step, offsets))
    access = _access(nbytes, dims, strides, alignment, windows)
    taps = tuple(sorted({tuple(view[axis][2] for axis in kept) for view in views}))
    is_box = len(taps) == access.taps or any(step != 1 for step, _ in windows)
    return access if is_box else replace(access, views=taps)


def components_access(one: ArrayAccess, first: Sequence[int], extent: int | None, alignment: int) -> ArrayAccess | None:
    """Slices of one array of every n-th element of its rows, or of a few neighbours in each, as windows; None where
    they are of other slices' elements.

    Args:
        one: the access to one of the slices.
        first: each one's first element.
        extent: elements of a row of each; None where run time has to say.
        alignment: bytes that the array's address is a multiple of.
    """
    step = one.strides[-1] if one.strides else None
    apart = extent if step == 1 else 1
    if len(first) < 2 or step is None or apart is None or any(b - a < apart for a, b in pairwise(first)):
        return None
    if step > 1 and max(first) >= step:
        return None
    outer = [(1, (0,))] * (len(one.dims) - 1)
    return replace(one, alignment=alignment, windows=(*outer, (step, tuple(sorted(first)))))


class Sliding(NamedTuple):
    """Where a gathered view lies whose windows move along two of its dimensions on some axis of its contiguous source.

    Attributes:
        dims: the dimension of the kernel's space along each axis of the source along which the view varies.
        strides: elements of the source from one index along it to the next one.
        steps: the same along the axis.
        slides: the other dimension along which windows move on the axis, and how far; None where there is none.
        first: the index of the first element along each of these axes.
    """

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    slides: tuple[tuple[int, int] | None, ...]
    first: tuple[int, ...]


def sliding_of(
    source: ir.RankedTensorType, known: dict[str, ir.Attribute], axes: Sequence[int | None]
) -> Sliding | None:
    """How the windows of a gathered view move; None where they move along one dimension each, and for other arguments.

    Args:
        source: the type of the view's source.
        known: the attributes of the argument.
        axes: the dimension of the kernel's space that runs along each dimension of the view.
    """
    gather = _undivided(known)
    if gather is None:
        return None
    dims, strides, steps, slides = list[int](), list[int](), list[int](), list[tuple[int, int] | None]()
    firsts = list[int]()
    for axis, expr in enumerate(gather.map.results):
        linear = coefficients(expr, len(axes))
        if linear is None:
            return None
        moved = [(along, c) for along, c in zip(axes, linear[0], strict=True) if along is not None and c]
        if len(moved) > 2 or any(c < 1 for _, c in moved):
            return None
        if moved:
            (along, step), *others = moved
            dims.append(along)
            strides.append(step * prod(source.shape[axis + 1 :]))
            steps.append(step)
            slides.append(others[0] if others else None)
            firsts.append(linear[1])
    used = [*dims, *(slide[0] for slide in slides if slide is not None)]
    if not any(slides) or len(set(used)) != len(used):
        return None
    return Sliding(tuple(dims), tuple(strides), tuple(steps), tuple(slides), tuple(firsts))


def sliding_access(views: Sequence[Sliding], nbytes: int, alignment: int) -> ArrayAccess:
    """Views of one array, which differ in the index of their first elements alone, as windows.

    Args:
        views: each one's windows.
        nbytes: of an element.
        alignment: bytes that the array's address is a multiple of.
    """
    dims, strides, steps, slides, _ = views[0]
    offsets = [tuple(sorted(set(along))) for along in zip(*(view.first for view in views), strict=True)]
    moved = [tuple(offset - along[0] for offset in along) for along in offsets]
    return _access(nbytes, dims, strides, alignment, list(zip(steps, moved, strict=True)), slides)


def read_elements(source: ir.RankedTensorType, known: dict[str, ir.Attribute]) -> int | None:
    """Elements of its source that a gathered view with these attributes reads, at most; None for a view that may read
    as many as it has itself.
    """
    gather = _undivided(known)
    if gather is None:
        return None
    extents = gather.components
    pairs = [(unwrapped(expr, extents), n) for expr, n in zip(gather.map.results, source.shape, strict=True)]
    # Of a view that is all beside its source threads read the nearest element, and drop it.
    most = prod(max(1, _indices(expr, extents, n)) for expr, n in pairs)
    return most if most < prod(gather.shape) else None


def _indices(expr: ir.AffineExpr, extents: Sequence[int], extent: int) -> int:
    """The numbers below `extent` that an expression is of dimensions below their extents, at most."""
    low, high = bounds(expr, extents)
    step = max(1, abs(place[1])) if (place := single_dim(expr, len(extents))) is not None else 1
    first = max(low, low % step)
    return max(0, min(high, extent - 1) - first + step) // step


def shared_elements(known: dict[str, ir.Attribute]) -> tuple[int, bool] | None:
    """The elements of an array that all elements of a view share, and whether neighbours of the view read neighbours of
    the array rather than the same element; None where the view has an element of its own for each.

    Args:
        known: the attributes of an argument, which is a gathered view.
    """
    gather = gather_of(ir.DictAttr(known[GATHER]))
    if gather.inside or not gather.joins_components:
        return None
    count = len(gather.components)
    exprs = [expr for expr in gather.map.results if not isinstance(expr, ir.AffineConstantExpr)]
    places = [single_dim(expr, count) for expr in exprs]
    used = {place[0] for place in places if place is not None}
    if len(used) < len(exprs) or len(used) == count:
        return None
    return prod(gather.components[d] for d in used), count - 1 in used


def inside_share(source: ir.RankedTensorType, known: dict[str, ir.Attribute]) -> float:
    """The share of the elements of a gathered view with these attributes that are inside of its source, by the axes
    that it has each, or each n-th, element of, as a part of joined arrays does; 1 of other views.
    """
    gather, share = _undivided(known, strided=True), 1.0
    if gather is None:
        return share
    for expr, extent in zip(gather.map.results, source.shape, strict=True):
        place = single_dim(expr, len(gather.components))
        if place is not None and place[1] > 0:
            dim, step, first = place
            size = gather.components[dim]
            low, high = max(0, -(first // step)), min(size, -(-(extent - first) // step))
            share *= max(0, high - low) / size
    return share


def _undivided(known: dict[str, ir.Attribute], *, strided: bool = False) -> Gather | None:
    """The gathered view of an argument with these attributes whose dimensions are undivided indices; None for any other
    argument, and for views of arrays that are not contiguous, unless `strided` asks for these too.
    """
    if GATHER not in known:
        return None
    entries = ir.DictAttr(known[GATHER])
    shape = source_of(entries).shape
    if not strided and "strides" in entries and entries_of(entries["strides"]) != row_major(shape):
        return None
    gather = gather_of(entries)
    return None if gather.joins_components or gather.inside else gather


def _access(
    nbytes: int,
    dims: Sequence[int],
    strides: Sequence[int],
    alignment: int,
    windows: Sequence[tuple[int | Fraction, tuple[int, ...]]],
    slides: Sequence[tuple[int, int] | None] = (),
) -> ArrayAccess:
    """The access to windows of a contiguous array whose elements have so many bytes."""
    return ArrayAccess(
        tuple(dims),
        tuple(strides),
        nbytes,
        alignment,
        written=False,
        is_contiguous=False,
        windows=tuple(windows),
        slides=tuple(slides),
    )

"""Arrays joined of parts: an op selects, at each place, among views of the parts (`mf.concat`, `mf.stack`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from mlir import ir

from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.dialect.gathered_view import DEFINITION as VIEW
from mlirfuse.dialect.gathered_view import gather_of
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.rewriting import defining_op

MORE = "it does more than to join parts"
"""Why an op is no join: it computes something, or reads something else."""


@dataclass(frozen=True)
class JoinedViews:
    """Parts of one shape, one after the other in a dimension of the whole, or in several, as the blocks of a matrix.

    Attributes:
        views: the `fuse.gathered_view` of each part, in row-major order of their places.
        shape: of a part.
        axes: for each axis of a part the dimension of the whole that runs along it.
        places: the dimensions of the whole in which parts follow one another.
        counts: how many parts there are along each of them.
    """

    views: tuple[ir.Operation, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    places: tuple[int, ...]
    counts: tuple[int, ...]


def joined_views(op: ir.Operation, source: Callable[[ir.Value], ir.Value | None]) -> JoinedViews | str:
    """What an op joins, or why it is no join of parts of one shape that follow one another from the first place on.

    Args:
        op: the op.
        source: what the host passes for an operand of the op; None for what the kernel computes.
    """
    views = selected_views(op, source)
    if isinstance(views, str):
        return views
    slices = [place_in_whole(view) for view in views]
    found = [each for each in slices if not isinstance(each, str)]
    if len(found) < len(slices):
        return next(each for each in slices if isinstance(each, str))
    axes, starts = zip(*found, strict=True)
    shapes = {tuple(ir.RankedTensorType(view.operands[0].type).shape) for view in views}
    places = [d for d in range(len(starts[0])) if len({start[d] for start in starts}) > 1]
    if len(set(axes)) > 1 or len(shapes) > 1 or not places:
        return "its parts have other shapes, or orders of dimensions"
    (shape,) = shapes
    if any(start for d, start in enumerate(starts[0]) if d not in places):
        return "its parts begin elsewhere than the whole"
    counts = [len({start[d] for start in starts}) for d in places]
    order = sorted(range(len(views)), key=lambda n: [starts[n][d] for d in places])
    sides = [shape[axes[0].index(d)] for d in places]
    filled = product(*(range(0, side * count, side) for side, count in zip(sides, counts, strict=True)))
    if [tuple(starts[n][d] for d in places) for n in order] != list(filled):
        return "its parts leave something out between them"
    return JoinedViews(tuple(views[n] for n in order), shape, axes[0], tuple(places), tuple(counts))


def is_pointwise(op: ir.Operation) -> bool:
    """Whether an op runs over elements in the order of all its operands, and of its only result."""
    structure = structure_of(op)
    if structure is None or structure.reduction_loops or len(op.results) != 1:
        return False
    loops = list(range(structure.loop_count))
    axes = [*structure.operand_axes[:-1], structure.result_axes[0]]
    return all(each is not None and list(each) == loops for each in axes)


def selected_views(op: ir.Operation, source: Callable[[ir.Value], ir.Value | None]) -> list[ir.Operation] | str:
    """The views among which an op selects, each where it is inside of its part, and zeros elsewhere; or why it does
    something else. The arguments are those of `joined_views`.
    """
    if not is_pointwise(op):
        return MORE
    passed = [source(operand) for operand in list(op.operands)[:-1]]
    if any(value is None for value in passed):
        return MORE
    block = op.regions[0].blocks[0]
    makers = {
        argument: defining_op(value)
        for argument, value in zip(list(block.arguments)[:-1], passed, strict=True)
        if value is not None
    }
    value, found = list(block.operations)[-1].operands[0], list[ir.Operation]()
    while (select := defining_op(value)) is not None and select.name == "arith.select":
        check, part, value = select.operands
        if check not in makers or part not in makers:
            return "it computes with parts before it joins them"
        view, inside = makers[part], makers[check]
        if view is None or inside is None or not view.name == inside.name == VIEW.full_name:
            return "a part is no view"
        if not _says_inside(inside, view):
            return "a part is selected elsewhere than inside of it"
        found.append(view)
    if len(found) < 2 or (select is not None and select.name != "arith.constant"):
        return MORE
    return found


def _says_inside(check: ir.Operation, view: ir.Operation) -> bool:
    """Whether a view says where another one is inside of its part."""
    part = tuple(ir.RankedTensorType(view.operands[0].type).shape)
    return gather_of(check.attributes) == replace(gather_of(view.attributes), inside=part)


def place_in_whole(view: ir.Operation) -> tuple[tuple[int, ...], tuple[int, ...]] | str:
    """For each axis of a part the dimension of the whole that runs along it, and for each dimension where the part
    begins; or why the part is no slice of the whole.
    """
    gather = gather_of(view.attributes)
    if gather.joins_components:
        return "the dimensions of the whole are joined"
    rank, axes, starts = len(gather.shape), list[int](), [0] * len(gather.shape)
    for expr in gather.map.results:
        linear = coefficients(expr, rank)
        dims = [d for d, factor in enumerate(linear[0]) if factor] if linear is not None else []
        if linear is None or len(dims) != 1 or linear[0][dims[0]] != 1 or dims[0] in axes:
            return "a part is no slice of the whole"
        axes.append(dims[0])
        starts[dims[0]] = -linear[1]
    if len(axes) != rank:
        return "a part is no slice of the whole"
    return tuple(axes), tuple(starts)


def are_apart(views: Sequence[ir.Operation]) -> bool:
    """Whether parts follow one another in one dimension of the whole."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for view in views:
        place = place_in_whole(view)
        if isinstance(place, str):
            return False
        axes, starts = place
        shape = ir.RankedTensorType(view.operands[0].type).shape
        for axis, dim in enumerate(axes):
            ranges.setdefault(dim, []).append((starts[dim], starts[dim] + shape[axis]))
    for own in ranges.values():
        own.sort()
        if all(end <= start for (_, end), (start, _) in pairwise(own)):
            return True
    return False

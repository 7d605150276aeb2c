"""Neighbouring dimensions of a kernel's iteration space that can be merged in memory and in every op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod

from mlir import ir

from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure

Axes = tuple[int | None, ...]
Pair = tuple[int, int]
"""Two dimensions, the second of which is the inner one in every array."""


def mergeable_pairs(
    space: IterationSpace,
    structures: Sequence[OpStructure],
    strided: Mapping[ir.Value, Collection[int]],
    *,
    of_whole_arrays: bool = False,
) -> frozenset[Pair]:
    """Pairs of dimensions that every op has together, and that are neighbours in every array that has them.

    A dimension of dynamic extent is not merged with an innermost dimension of static extent, because the divisors of
    the static extent, and so the access width, would be lost. The divisors do not matter if one dimension remains and
    nothing is reduced: only the end of the arrays may then be narrower than an access. Nor do they if all is reduced
    and static extents are odd, which have accesses of single elements anyway, and rows that leave lanes idle.

    Args:
        space: the kernel's iteration space.
        structures: its ops.
        strided: arguments that are not contiguous, each with the axes that are not one in memory with the next one.
        of_whole_arrays: whether the rule about innermost dimensions holds only for arrays over all dimensions, which
            have most of the traffic.
    """
    arrays = [*space.value_axes.values(), *space.use_axes.values()]
    candidates = {(a, b) for axes in arrays for a, b in pairwise(axes) if a is not None and b is not None}
    pairs = {
        pair
        for pair in candidates
        if all(_neighbours(pair, axes) for axes in arrays) and all(_together(pair, s, space) for s in structures)
    }
    uses: dict[ir.Value, set[Axes]] = {}
    for (op, number), axes in space.use_axes.items():
        uses.setdefault(op.operands[number], set()).add(axes)
    for value, apart in strided.items():
        for axes in uses.get(value, ()):
            pairs -= {pair for axis, pair in enumerate(pairwise(axes)) if axis in apart}
    while conflict := _ambiguous(uses, pairs):
        pairs -= conflict
    if len(pairs) < space.rank - 1 or (space.reduced_dims and not _has_odd_rows(space)):
        whole = {d for d, extent in enumerate(space.extents) if extent != 1}
        wide = [axes for axes in arrays if not of_whole_arrays or whole <= set(axes)]
        pairs = {pair for pair in pairs if not _hides_innermost(pair, pairs, wide, space)}
        while conflict := _ambiguous(uses, pairs):
            pairs -= conflict
    return frozenset(pairs)


def runs(axes: Axes, pairs: Iterable[Pair]) -> list[list[int]]:
    """The axes of an array, grouped by merged dimension."""
    merged = set(pairs)
    groups: list[list[int]] = []
    for axis, dim in enumerate(axes):
        if axis and (axes[axis - 1], dim) in merged:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _neighbours(pair: Pair, axes: Axes) -> bool:
    a, b = pair
    if a not in axes and b not in axes:
        return True
    return a in axes and b in axes and axes.index(b) == axes.index(a) + 1


def _together(pair: Pair, structure: OpStructure, space: IterationSpace) -> bool:
    """Whether an op runs over both dimensions of a pair or none, and reduces both or none."""
    loops = space.loops[structure.op]
    reduced = {loops[loop] for loop in structure.reduction_loops}
    a, b = pair
    return (a in loops) == (b in loops) and (a in reduced) == (b in reduced)


def _has_odd_rows(space: IterationSpace) -> bool:
    """Whether all dimensions of static extent together have an odd number of elements."""
    return prod(extent for extent in space.extents if extent is not None) % 2 == 1


def _hides_innermost(pair: Pair, pairs: set[Pair], arrays: Sequence[Axes], space: IterationSpace) -> bool:
    """Whether a dimension of dynamic extent would be merged with an innermost dimension of static extent."""
    outer, inner = pair
    if space.extents[outer] is not None or space.extents[inner] is None:
        return False
    successor = dict(pairs)
    while inner in successor:
        inner = successor[inner]
    return any(next((d for d in reversed(axes) if d is not None), None) == inner for axes in arrays)


def _ambiguous(uses: dict[ir.Value, set[Axes]], pairs: set[Pair]) -> set[Pair]:
    """Pairs that would give an argument different shapes in different uses."""
    for readings in uses.values():
        if len({tuple(map(tuple, runs(axes, pairs))) for axes in readings}) > 1:
            return {p for axes in readings for p in pairwise(axes) if p in pairs}
    return set()

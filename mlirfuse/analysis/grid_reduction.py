"""Reductions that the whole grid works on: which dimension the blocks loop over, and what runs before and after the
reductions.

A sum over rows needs every block. Each block loops over some of the rows and carries a partial sum; the partial sums of
all blocks then meet. Reductions inside of a row may run in the same loop, and feed the sums: `dx`, `dw` and `db` of a
normalisation read their inputs once. What the reductions feed runs after them, and may not vary along the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure


@dataclass(frozen=True)
class GridReduction:
    """A kernel's ops, by when a grid that loops over some dimensions runs them.

    Attributes:
        outer_dims: the dimensions of the persistent loop, in order.
        column: ops that do not vary along `outer_dims`, and run once a block.
        tile: ops that run for every tile; among them are the reductions inside of a tile.
        reductions: the reductions over `outer_dims`, which a block carries from tile to tile.
        second_stage: ops that run on the reductions, with the ops of `column` that they need.
    """

    outer_dims: tuple[int, ...]
    column: tuple[OpStructure, ...]
    tile: tuple[OpStructure, ...]
    reductions: tuple[OpStructure, ...]
    second_stage: tuple[OpStructure, ...]


def needs_grid(space: IterationSpace) -> bool:
    """Whether no block could reduce alone: a reduced extent is dynamic, or reductions run over different dimensions."""
    sets = {dims for dims in space.reduced.values() if dims}
    return len(sets) > 1 or any(space.extents[d] is None for d in space.reduced_dims)


def grid_reduction(
    space: IterationSpace,
    structures: Sequence[OpStructure],
    returned: Iterable[ir.Value] = (),
    *,
    whole_rows: bool = True,
) -> GridReduction | Conflict:
    """Splits ops, given in program order, into those before and after the reductions; or says why that is impossible.

    Args:
        space: the ops' iteration space.
        structures: the ops.
        returned: values that leave the kernel.
        whole_rows: whether a tile holds the innermost dimension whole where it is reduced together with others; if not,
            the grid loops over it too.
    """
    last = structures[-1].op
    if not space.reduced_dims:
        return Conflict("it reduces nothing", last)
    outer_dims = _outer_dims(space, whole_rows=whole_rows)
    if any(space.extents[d] is None for d in space.reduced_dims - set(outer_dims)):
        return Conflict("a reduction inside of its tiles runs over an extent that is known at run time only", last)
    if needs_grid(space) and any(extent is None for d, extent in enumerate(space.extents) if d not in outer_dims):
        return Conflict("its tiles would hold all of an extent that is known at run time only", last)
    column: list[OpStructure] = []
    tile: list[OpStructure] = []
    if (contraction := contraction_in(space, structures)) is not None:
        return Conflict("a contraction's kernel has no other reduction", contraction.structure.op)
    reductions: list[OpStructure] = []
    second_stage: list[OpStructure] = []
    late: set[ir.Value] = set()
    made = {result for s in structures for result in s.op.results}
    for s in structures:
        over = space.reduced.get(s.op, frozenset())
        along = any(d in outer_dims for d in space.loops[s.op])
        if any(operand in late for operand in s.operands):
            if over:
                return Conflict("it reduces what a sum over the grid feeds, which is known at the end only", s.op)
            if along:
                return Conflict("it needs a sum over the grid in every tile, which takes a second pass", s.op)
            second_stage.append(s)
            late.update(s.op.results)
        elif over & set(outer_dims):
            if s.op.name != "linalg.generic":
                return Conflict(f"{s.op.name} has no form that blocks carry from tile to tile", s.op)
            if s.operands[-1] in made:
                return Conflict("it starts from what its kernel computes, which the second stage has no more", s.op)
            reductions.append(s)
            late.update(s.op.results)
        else:
            (tile if along else column).append(s)
    # Results that do not vary along the looped dimensions are written by the second stage, which runs even where there
    # is no tile.
    roots = [v for s in second_stage for v in s.operands] + list(returned)
    needed = _producers(column, roots)
    for s in needed:
        if space.reduced.get(s.op):
            return Conflict("it reduces inside of a row what does not vary over rows", s.op)
    order = {s.op: position for position, s in enumerate(structures)}
    second_stage = sorted([*second_stage, *needed], key=lambda s: order[s.op])
    return GridReduction(outer_dims, tuple(column), tuple(tile), tuple(reductions), tuple(second_stage))


def kept_dims(space: IterationSpace, total: OpStructure) -> list[int]:
    """The dimensions along which a reduction varies."""
    loops = {d for d in space.loops[total.op] if d is not None}
    return sorted(loops - space.reduced[total.op])


def second_stage_dims(space: IterationSpace, plan: GridReduction) -> frozenset[int]:
    """The dimensions along which something varies that runs on the reductions."""
    kept = {d for s in plan.reductions for d in kept_dims(space, s)}
    return frozenset(kept | {d for s in plan.second_stage for d in space.loops[s.op] if d is not None})


def _outer_dims(space: IterationSpace, *, whole_rows: bool) -> tuple[int, ...]:
    """The dimensions that all outer reductions share and no inner one has.

    Inner reductions are those without the outermost reduced dimension, or the outermost of run-time extent where there
    is one, which no tile can hold: of operands that share no dimension any may come first. For whole rows the innermost
    dimension of all is kept for the tile, where accesses are contiguous along it, unless there is no other.
    """
    sets = [dims for dims in space.reduced.values() if dims]
    reduced = frozenset().union(*sets)
    outermost = min({d for d in reduced if space.extents[d] is None} or reduced)
    outer = [dims for dims in sets if outermost in dims]
    inside = frozenset().union(*(dims for dims in sets if outermost not in dims))
    outer_dims = frozenset.intersection(*outer) - inside
    innermost = space.rank - 1
    if whole_rows and len(outer_dims) > 1 and space.extents[innermost] is not None:
        outer_dims -= {innermost}
    return tuple(sorted(outer_dims))


def _producers(ops: Sequence[OpStructure], roots: Iterable[ir.Value]) -> list[OpStructure]:
    """Those of `ops`, which are in program order, that the roots depend on."""
    wanted = set(roots)
    found = []
    for s in reversed(ops):
        if any(result in wanted for result in s.op.results):
            found.append(s)
            wanted.update(s.operands)
    return found[::-1]

"""Reductions that the whole grid works on: which dimension the blocks walk, and what runs before and after the totals.

A sum over rows needs every block. Each block walks some of the rows and carries a partial sum; the partial sums of all
blocks then meet. Reductions inside of a row may run in the same walk, and feed the sums: `dx`, `dw` and `db` of a
normalisation read their inputs once. What the totals feed runs after them, and may not vary along the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contraction import contraction_in
from mlirfuse.analysis.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.structure import OpStructure


@dataclass(frozen=True)
class GridReduction:
    """A kernel's ops, by when a grid that walks some dimensions runs them.

    Attributes:
        walked: the dimensions that the grid walks, in order.
        column: ops that do not vary along `walked`, and run once a block.
        tile: ops that run for every tile; among them are the reductions inside of a tile.
        totals: the reductions over `walked`, which a block carries from tile to tile.
        finish: ops that run on the totals, with the ops of `column` that they need.
    """

    walked: tuple[int, ...]
    column: tuple[OpStructure, ...]
    tile: tuple[OpStructure, ...]
    totals: tuple[OpStructure, ...]
    finish: tuple[OpStructure, ...]


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
    """Splits ops, given in program order, into what runs before and after the totals; or says why that is impossible.

    Args:
        space: the ops' iteration space.
        structures: the ops.
        returned: values that leave the kernel.
        whole_rows: whether a tile holds the innermost dimension whole where it is reduced together with others; if not,
            the grid walks it too.
    """
    last = structures[-1].op
    if not space.reduced_dims:
        return Conflict("it reduces nothing", last)
    walked = _walked(space, whole_rows=whole_rows)
    if any(space.extents[d] is None for d in space.reduced_dims - set(walked)):
        return Conflict("a reduction inside of its tiles runs over an extent that is known at run time only", last)
    if needs_grid(space) and any(extent is None for d, extent in enumerate(space.extents) if d not in walked):
        return Conflict("its tiles would hold all of an extent that is known at run time only", last)
    column: list[OpStructure] = []
    tile: list[OpStructure] = []
    if (contraction := contraction_in(space, structures)) is not None:
        return Conflict("a contraction's kernel has no other reduction", contraction.structure.op)
    totals: list[OpStructure] = []
    finish: list[OpStructure] = []
    late: set[ir.Value] = set()
    made = {result for s in structures for result in s.op.results}
    for s in structures:
        over = space.reduced.get(s.op, frozenset())
        along = any(d in walked for d in space.loops[s.op])
        if any(operand in late for operand in s.operands):
            if over:
                return Conflict("it reduces what a sum over the grid feeds, which is known at the end only", s.op)
            if along:
                return Conflict("it needs a sum over the grid in every tile, which takes a second pass", s.op)
            finish.append(s)
            late.update(s.op.results)
        elif over & set(walked):
            if s.op.name != "linalg.generic":
                return Conflict(f"{s.op.name} has no form that blocks carry from tile to tile", s.op)
            if s.operands[-1] in made:
                return Conflict("it starts from what its kernel computes, which the finish of a walk has no more", s.op)
            totals.append(s)
            late.update(s.op.results)
        else:
            (tile if along else column).append(s)
    # What does not vary along the walk is written by the finish, which runs even where there is nothing to walk.
    roots = [v for s in finish for v in s.operands] + list(returned)
    needed = _producers(column, roots)
    for s in needed:
        if space.reduced.get(s.op):
            return Conflict("it reduces inside of a row what does not vary over rows", s.op)
    order = {s.op: position for position, s in enumerate(structures)}
    finish = sorted([*finish, *needed], key=lambda s: order[s.op])
    return GridReduction(walked, tuple(column), tuple(tile), tuple(totals), tuple(finish))


def kept_dims(space: IterationSpace, total: OpStructure) -> list[int]:
    """The dimensions along which a total varies."""
    loops = {d for d in space.loops[total.op] if d is not None}
    return sorted(loops - space.reduced[total.op])


def finish_dims(space: IterationSpace, plan: GridReduction) -> frozenset[int]:
    """The dimensions along which something varies that runs on the totals."""
    kept = {d for s in plan.totals for d in kept_dims(space, s)}
    return frozenset(kept | {d for s in plan.finish for d in space.loops[s.op] if d is not None})


def _walked(space: IterationSpace, *, whole_rows: bool) -> tuple[int, ...]:
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
    walked = frozenset.intersection(*outer) - inside
    innermost = space.rank - 1
    if whole_rows and len(walked) > 1 and space.extents[innermost] is not None:
        walked -= {innermost}
    return tuple(sorted(walked))


def _producers(ops: Sequence[OpStructure], roots: Iterable[ir.Value]) -> list[OpStructure]:
    """Those of `ops`, which are in program order, that the roots depend on."""
    wanted = set(roots)
    found = []
    for s in reversed(ops):
        if any(result in wanted for result in s.op.results):
            found.append(s)
            wanted.update(s.operands)
    return found[::-1]

"""Grid reductions: the dimensions that blocks loop over, and the ops before and after the reductions.

For a sum over rows each block loops over some of the rows and accumulates a partial sum; the second stage combines the
partials of all blocks. Reductions within a row may run in the same loop and be inputs of the sums, so that `dx`, `dw`
and `db` of a normalisation read their inputs once. Ops that use a sum run in the second stage, and may not vary along
the rows.
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
    """A kernel's ops, by stage of a grid reduction.

    Attributes:
        outer_dims: the dimensions of the persistent loop, in order.
        column: ops that do not vary along `outer_dims`, and run once in each block.
        tile: ops that run for every tile, among them reductions within a tile.
        reductions: the reductions over `outer_dims`, whose accumulators a block carries from tile to tile.
        second_stage: ops on the results of `reductions`, and the ops of `column` that these need.
    """

    outer_dims: tuple[int, ...]
    column: tuple[OpStructure, ...]
    tile: tuple[OpStructure, ...]
    reductions: tuple[OpStructure, ...]
    second_stage: tuple[OpStructure, ...]


def needs_grid(space: IterationSpace) -> bool:
    """Whether one block cannot reduce alone: an extent is dynamic, or reductions are over different dimensions."""
    sets = {dims for dims in space.reduced.values() if dims}
    return len(sets) > 1 or any(space.extents[d] is None for d in space.reduced_dims)


def grid_reduction(
    space: IterationSpace,
    structures: Sequence[OpStructure],
    returned: Iterable[ir.Value] = (),
    *,
    whole_rows: bool = True,
) -> GridReduction | Conflict:
    """Splits ops into the stages of a grid reduction; or says why that is impossible.

    Args:
        space: the ops' iteration space.
        structures: the ops, in program order.
        returned: the kernel's results.
        whole_rows: whether a tile covers the innermost dimension entirely if it is reduced together with others; if
            not, the persistent loop also runs over that dimension.
    """
    if not space.reduced_dims:
        return Conflict("it reduces nothing", structures[-1].op)
    found: GridReduction | Conflict | None = None
    for outer_dims in _choices_of_outer_dims(space, whole_rows=whole_rows):
        plan = _stages(space, structures, list(returned), outer_dims)
        if isinstance(plan, GridReduction):
            return plan
        found = found or plan
    assert found is not None
    return found


def _stages(
    space: IterationSpace, structures: Sequence[OpStructure], returned: Sequence[ir.Value], outer_dims: tuple[int, ...]
) -> GridReduction | Conflict:
    """`grid_reduction` for a persistent loop over these dimensions."""
    last = structures[-1].op
    if any(space.extents[d] is None for d in space.reduced_dims - set(outer_dims)):
        return Conflict("a reduction within a tile runs over a dynamic extent", last)
    if needs_grid(space) and any(extent is None for d, extent in enumerate(space.extents) if d not in outer_dims):
        return Conflict("a tile would have to cover a dynamic extent entirely", last)
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
                return Conflict("it reduces a value that depends on a reduction over the grid, known at its end", s.op)
            if along:
                return Conflict("it uses a reduction over the grid in every tile, which takes a second pass", s.op)
            second_stage.append(s)
            late.update(s.op.results)
        elif over & set(outer_dims):
            if s.op.name != "linalg.generic":
                return Conflict(f"{s.op.name} cannot be accumulated from tile to tile", s.op)
            if s.operands[-1] in made:
                return Conflict("its initial value is computed in the kernel, and unknown to the second stage", s.op)
            reductions.append(s)
            late.update(s.op.results)
        else:
            (tile if along else column).append(s)
    # Results that do not vary along the looped dimensions are written by the second stage, which runs even where there
    # is no tile.
    roots = [v for s in second_stage for v in s.operands] + list(returned)
    needed = producers(column, roots)
    for s in needed:
        if space.reduced.get(s.op):
            return Conflict("it reduces, within a row, a value that does not vary over rows", s.op)
    order = {s.op: position for position, s in enumerate(structures)}
    second_stage = sorted([*second_stage, *needed], key=lambda s: order[s.op])
    return GridReduction(outer_dims, tuple(column), tuple(tile), tuple(reductions), tuple(second_stage))


def kept_dims(space: IterationSpace, reduction: OpStructure) -> list[int]:
    """The dimensions along which a reduction varies."""
    loops = {d for d in space.loops[reduction.op] if d is not None}
    return sorted(loops - space.reduced[reduction.op])


def second_stage_dims(space: IterationSpace, plan: GridReduction) -> frozenset[int]:
    """The dimensions along which ops of the second stage, or the reductions, vary."""
    kept = {d for s in plan.reductions for d in kept_dims(space, s)}
    return frozenset(kept | {d for s in plan.second_stage for d in space.loops[s.op] if d is not None})


def _choices_of_outer_dims(space: IterationSpace, *, whole_rows: bool) -> list[tuple[int, ...]]:
    """The dimensions that a persistent loop may have, the outermost ones first.

    Where an extent is dynamic, there is no choice: a tile cannot cover it, and of operands that share no dimension any
    may come first. Behind the outermost reduced dimension come those of reductions that share none with those that do
    not have them.
    """
    reduced, sets = space.reduced_dims, [dims for dims in space.reduced.values() if dims]
    dynamic = {d for d in reduced if space.extents[d] is None}
    first, *others = [min(dynamic)] if dynamic else sorted(reduced)
    apart = [d for d in others if all(not a & b for a in sets if d in a for b in sets if d not in b)]
    return list(dict.fromkeys(_outer_dims(space, d, whole_rows=whole_rows) for d in (first, *apart)))


def _outer_dims(space: IterationSpace, outermost: int, *, whole_rows: bool) -> tuple[int, ...]:
    """The dimensions of the persistent loop: those that all reductions over an outermost one have, and no other
    reduction has. With whole rows, the innermost dimension of all, along which accesses are contiguous, is left to the
    tile unless there is no other.
    """
    sets = [dims for dims in space.reduced.values() if dims]
    outer = [dims for dims in sets if outermost in dims]
    inside = frozenset().union(*(dims for dims in sets if outermost not in dims))
    outer_dims = frozenset.intersection(*outer) - inside
    innermost = space.rank - 1
    if whole_rows and len(outer_dims) > 1 and space.extents[innermost] is not None:
        outer_dims -= {innermost}
    return tuple(sorted(outer_dims))


def producers(ops: Sequence[OpStructure], roots: Iterable[ir.Value]) -> list[OpStructure]:
    """The ops, of `ops` in program order, that the roots depend on."""
    wanted = set(roots)
    found = []
    for s in reversed(ops):
        if any(result in wanted for result in s.op.results):
            found.append(s)
            wanted.update(s.operands)
    return found[::-1]

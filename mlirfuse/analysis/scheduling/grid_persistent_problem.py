"""Measures a kernel of statistics over all of its tiles, which tiles may need again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import Instructions, instructions_of
from mlirfuse.analysis.arithmetic.ranges import Ranges
from mlirfuse.analysis.grid_persistent import EXP_SUM, MOMENTS, GridPersistentOps, grid_persistent_ops
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.schedule.problem import GridPersistentProblem
from mlirfuse.support.dtypes import element_bytes

MORE = {MOMENTS: Instructions(plain=2.0), EXP_SUM: Instructions(plain=4.0, special=1.0)}
"""Instructions of an element beyond those of a joint reduction of a tile: its deviation is weighted by how many came
before, or the sum of exponentials before it is rescaled."""

Read = tuple[ir.Value, tuple[int | None, ...]]


def grid_persistent_problem(
    space: IterationSpace, structures: Sequence[OpStructure], returned: Iterable[ir.Value]
) -> GridPersistentProblem | None:
    """What a grid persistent kernel is to do; None for a kernel that is none."""
    if not space.reduced_dims:
        return None
    plan = grid_persistent_ops(space, structures, returned)
    if isinstance(plan, Conflict):
        return None
    first = _reads(space, [*plan.first, *plan.reductions])
    second = _reads(space, plan.second)
    work = _instructions(space, [*plan.first, *plan.reductions, *plan.second])
    work = sum((MORE.get(s.op.name, Instructions()) for s in plan.reductions), work)
    return GridPersistentProblem(
        dims=plan.dims,
        visits=2 if plan.second else 1,
        first_bytes=_bytes(first),
        second_bytes=_bytes(second),
        again_bytes=_bytes([read for read in first if read in second]),
        carried_bytes=sum(element_bytes(result.type) for s in plan.reductions for result in s.op.results),
        column_values=_column_values(plan),
        instructions=work.plain,
        special=work.special,
        double=work.double,
    )


def _reads(space: IterationSpace, ops: Iterable[OpStructure]) -> list[Read]:
    """The arrays over the whole space that ops read."""
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    chosen = {s.op for s in ops}
    reads = [(op.operands[n], axes) for (op, n), axes in space.use_axes.items() if op in chosen and whole <= set(axes)]
    return list(dict.fromkeys(read for read in reads if isinstance(read[0].type, ir.RankedTensorType)))


def _column_values(plan: GridPersistentOps) -> int:
    """Values that do not vary along the tiles and that a second visit uses."""
    along = {result for s in plan.second for result in s.op.results}
    late = {result for s in (*plan.column, *plan.late, *plan.reductions) for result in s.op.results}
    arguments = {
        operand
        for s in plan.second
        for operand, axes in zip(s.operands, s.operand_axes, strict=True)
        if axes is not None and operand not in along and isinstance(operand.owner, ir.Block)
        if isinstance(operand.type, ir.RankedTensorType) and len([a for a in axes if a is not None]) < s.loop_count
    }
    return len(arguments | {operand for s in plan.second for operand in s.operands if operand in late})


def _instructions(space: IterationSpace, ops: Sequence[OpStructure]) -> Instructions:
    """The instructions of ops that run over all of the space, for an element of it."""
    whole, range_of = {d for d, extent in enumerate(space.extents) if extent != 1}, Ranges().of
    return sum((instructions_of(s.op, range_of) for s in ops if whole <= set(space.loops[s.op])), Instructions())


def _bytes(reads: Iterable[Read]) -> int:
    return sum(element_bytes(value.type) for value, _ in reads)

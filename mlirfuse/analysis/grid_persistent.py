"""Kernels whose tiles need statistics over the whole grid, which visit their tiles twice around one grid barrier.

A batch normalisation's mean and variance are over the leading axes, and every element then needs them. Blocks visit
their tiles for the statistics, combine these, and visit their tiles again for the results. nvFuser calls such kernels
grid persistent. Joint reductions, such as a mean and a variance, may also be all that is wanted: one visit does, and
the block of a slice that arrives last combines them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.grid_reduction import producers
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure

MOMENTS, EXP_SUM = "fuse.moments", "fuse.exp_sum"


@dataclass(frozen=True)
class GridPersistentOps:
    """A kernel's ops, by stage.

    Attributes:
        dims: the dimensions that all reductions reduce, in order.
        kept: the other dimensions, along which slices of the data are independent.
        column: ops that neither vary along `dims` nor need a reduction.
        first: ops of the first visit of a tile, which reductions need, and results where there is one visit only.
        reductions: the reductions over `dims`, independent of one another.
        late: ops that need reductions and do not vary along `dims`.
        second: ops of the second visit of a tile, which results need; empty where no tile needs a reduction.
    """

    dims: tuple[int, ...]
    kept: tuple[int, ...]
    column: tuple[OpStructure, ...]
    first: tuple[OpStructure, ...]
    reductions: tuple[OpStructure, ...]
    late: tuple[OpStructure, ...]
    second: tuple[OpStructure, ...]


def grid_persistent_ops(
    space: IterationSpace, structures: Sequence[OpStructure], returned: Iterable[ir.Value]
) -> GridPersistentOps | Conflict:
    """Splits ops into the stages of a grid persistent kernel; or says why that is impossible.

    Args:
        space: the ops' iteration space.
        structures: the ops, in program order.
        returned: the kernel's results.
    """
    last = structures[-1].op
    reducing = {op: dims for op, dims in space.reduced.items() if dims}
    if not reducing:
        return Conflict("it reduces nothing", last)
    if (contraction := contraction_in(space, structures)) is not None:
        return Conflict("a contraction's kernel has no other reduction", contraction.structure.op)
    dims = next(iter(reducing.values()))
    if other := next((op for op, reduced in reducing.items() if reduced != dims), None):
        return Conflict("its reductions run over different dimensions", other)
    if any(extent is None for d, extent in enumerate(space.extents) if d not in dims):
        return Conflict("a slice would have to divide a dynamic extent", last)
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    made = {result for s in structures for result in s.op.results}
    column: list[OpStructure] = []
    tile: list[OpStructure] = []
    reductions: list[OpStructure] = []
    late: list[OpStructure] = []
    known_late: set[ir.Value] = set()
    waits = False
    for s in structures:
        is_late = any(operand in known_late for operand in s.operands)
        along = not dims.isdisjoint(space.loops[s.op])
        if space.reduced.get(s.op):
            if is_late:
                return Conflict("it waits for another reduction over the grid, which takes a second barrier", s.op)
            if s.op.name not in ("linalg.generic", MOMENTS, EXP_SUM):
                return Conflict(f"partial results of {s.op.name} are not combined over a grid", s.op)
            if s.op.name == "linalg.generic" and s.operands[-1] in made:
                return Conflict("its initial value is computed in the kernel", s.op)
            if not whole <= set(space.loops[s.op]):
                return Conflict("it does not vary along all dimensions", s.op)
            reductions.append(s)
            known_late.update(s.op.results)
        elif along:
            tile.append(s)
            if is_late:
                waits = True
                known_late.update(s.op.results)
        elif is_late:
            late.append(s)
            known_late.update(s.op.results)
        else:
            column.append(s)
    if not waits and not any(s.op.name in (MOMENTS, EXP_SUM) for s in reductions):
        return Conflict("nothing along what it reduces waits for a reduction", last)
    varying = {r for s in tile for r in s.op.results}
    inputs = [operand for s in reductions for operand in s.operands]
    results = [value for value in returned if value in varying]
    return GridPersistentOps(
        tuple(sorted(dims)),
        tuple(d for d in range(space.rank) if d not in dims),
        tuple(column),
        tuple(producers(tile, inputs if waits else [*inputs, *results])),
        tuple(reductions),
        tuple(late),
        tuple(producers(tile, results)) if waits else (),
    )

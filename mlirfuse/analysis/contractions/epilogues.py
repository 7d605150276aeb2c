"""Ops after a contraction in its kernel: ops on the result's tile, reductions over tiles, and ops on their results.

A reduction over dimensions of the result, such as a row's sum of squares, needs several tiles: each block computes a
partial, and the result is known when all blocks along these dimensions have ended. Ops on a tile that use such a result
therefore run in a second kernel. So does a reduction over a dynamic extent, because no block exists if the extent is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.contractions.contraction_operands import producers
from mlirfuse.analysis.contractions.operand_sums import OperandSum, operand_sums
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure
from mlirfuse.dialect.attributes import DEFERRED
from mlirfuse.errors import PassError


@dataclass(frozen=True)
class Epilogue:
    """The ops after a contraction, in program order.

    Attributes:
        tile: ops on the result's tile.
        reductions: reductions of the tile, all over the same dimensions.
        second_stage: ops on the results of the reductions.
        operand_sums: sums of an operand, made in the loop along k, whose results ops of `tile` may read.
    """

    tile: tuple[OpStructure, ...]
    reductions: tuple[OpStructure, ...]
    second_stage: tuple[OpStructure, ...]
    operand_sums: tuple[OperandSum, ...] = ()


def epilogue_of(
    space: IterationSpace, contraction: Contraction, structures: Sequence[OpStructure]
) -> Epilogue | tuple[OpStructure, str]:
    """Sorts the ops after a contraction; or returns an op that cannot be in the contraction's kernel, and why."""
    tile: list[OpStructure] = []
    reductions: list[OpStructure] = []
    second_stage: list[OpStructure] = []
    after_reduction: set[ir.Value] = set()
    sums = operand_sums(space, contraction, structures)
    in_loop = {op for each in sums for op in each.members}
    for s in structures:
        if s.op in in_loop:
            continue
        late = any(operand in after_reduction for operand in s.operands)
        if reason := _problem(space, contraction, s, reductions, late):
            return s, reason
        (reductions if s.reduction_loops else second_stage if late else tile).append(s)
        if late or s.reduction_loops:
            after_reduction.update(s.op.results)
    return Epilogue(tuple(tile), tuple(reductions), tuple(second_stage), sums)


def misfit(space: IterationSpace, structures: Sequence[OpStructure], *, sums: bool = False) -> str | None:
    """Why ops cannot share the kernel of a contraction among them; None if they can, or if there is no contraction.

    Only ops that rename elements of its operands may come before the contraction, and with `sums` sums of an operand.
    """
    found = contraction_in(space, structures)
    if found is None:
        return None
    in_loop = {op for each in operand_sums(space, found, structures) for op in each.members}
    if in_loop and not sums:
        return "it sums up an operand of a contraction"
    structures = [s for s in structures if s.op not in in_loop]
    position = [s.op for s in structures].index(found.structure.op)
    factors = {number for pair in found.pairs for number in pair}
    renaming = {s.op for number in factors for s in producers(found.structure.op.operands[number])}
    if any(s.op.name not in RENAMING_OPS or s.op not in renaming for s in structures[:position]):
        return "a contraction starts a kernel of its own"
    epilogue = epilogue_of(space, found, structures[position + 1 :])
    return None if isinstance(epilogue, Epilogue) else epilogue[1]


def _problem(
    space: IterationSpace, contraction: Contraction, s: OpStructure, reductions: Sequence[OpStructure], late: bool
) -> str | None:
    """Why an op cannot follow the contraction and the reductions before it, or None."""
    if set(contraction.summed) & set(space.loops[s.op]):
        return "it runs along a dimension that a contraction sums over"
    if DEFERRED in s.op.attributes:
        return "it is faster where the product's result is read again"
    reduced = {dim for reduction in reductions for dim in space.reduced.get(reduction.op, frozenset())}
    if not s.reduction_loops:
        needs_all = late and reduced & set(space.loops[s.op])
        return "every tile would need the result of a reduction over all tiles" if needs_all else None
    if late:
        return "it reduces a value that depends on a reduction over all tiles"
    if any(space.extents[d] is None for d in space.reduced.get(s.op, frozenset())):
        return "it reduces a dynamic extent: if the extent is 0, no block exists to write the result"
    if s.reduction_loops and space.reduced.get(s.op, frozenset()) <= set(contraction.batch):
        return "it reduces batches, of which a tile has one: it would leave as many partial results"
    if reductions and space.reduced.get(s.op, frozenset()) != reduced:
        return "it reduces other dimensions than the reductions of its kernel"
    try:
        combiner_of(s)
    except PassError as error:
        return error.message
    return None

"""Ops behind a contraction in its kernel: on the tile of its result, reductions over tiles, and on their results.

A reduction reduces the tile over dimensions of the result, such as a row's sum of squares. A block has a partial of it;
the result is known when all blocks along these dimensions are done, so ops on a tile that need a reduction take a
second kernel. So does a reduction over an extent that is known at run time: it may be 0, and then there is no block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.contractions.contraction_operands import producers
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure
from mlirfuse.errors import PassError


@dataclass(frozen=True)
class Epilogue:
    """The ops behind a contraction, in program order.

    Attributes:
        tile: ops on the tile.
        reductions: reductions, all over the same dimensions.
        second_stage: ops on the results of reductions.
    """

    tile: tuple[OpStructure, ...]
    reductions: tuple[OpStructure, ...]
    second_stage: tuple[OpStructure, ...]


def epilogue_of(
    space: IterationSpace, contraction: Contraction, structures: Sequence[OpStructure]
) -> Epilogue | tuple[OpStructure, str]:
    """Sorts the ops behind a contraction, or says which of them cannot be there, and why."""
    tile: list[OpStructure] = []
    reductions: list[OpStructure] = []
    second_stage: list[OpStructure] = []
    known_late: set[ir.Value] = set()
    for s in structures:
        late = any(operand in known_late for operand in s.operands)
        if reason := _problem(space, contraction, s, reductions, late):
            return s, reason
        (reductions if s.reduction_loops else second_stage if late else tile).append(s)
        if late or s.reduction_loops:
            known_late.update(s.op.results)
    return Epilogue(tuple(tile), tuple(reductions), tuple(second_stage))


def misfit(space: IterationSpace, structures: Sequence[OpStructure]) -> str | None:
    """Why ops with a contraction among them cannot share its kernel; None if they can, or if there is no contraction.

    The contraction comes first, but for ops that only rename its operands' elements.
    """
    found = contraction_in(space, structures)
    if found is None:
        return None
    place = [s.op for s in structures].index(found.structure.op)
    renaming = {s.op for number in (0, 1) for s in producers(found.structure.op.operands[number])}
    if any(s.op.name not in RENAMING_OPS or s.op not in renaming for s in structures[:place]):
        return "a contraction starts a kernel of its own"
    epilogue = epilogue_of(space, found, structures[place + 1 :])
    return None if isinstance(epilogue, Epilogue) else epilogue[1]


def _problem(
    space: IterationSpace, contraction: Contraction, s: OpStructure, reductions: Sequence[OpStructure], late: bool
) -> str | None:
    """Why an op cannot follow the contraction and the reductions before it, or None."""
    if contraction.k in space.loops[s.op]:
        return "it runs along a dimension that a contraction sums over"
    reduced = {dim for total in reductions for dim in space.reduced.get(total.op, frozenset())}
    if not s.reduction_loops:
        return "every tile would need the reduction of all tiles" if late and reduced & set(space.loops[s.op]) else None
    if late:
        return "it reduces what the reduction of all tiles is needed for"
    if any(space.extents[d] is None for d in space.reduced.get(s.op, frozenset())):
        return "it reduces a dynamic extent: where that is 0 there are no tiles, and no block to write the result"
    if reductions and space.reduced.get(s.op, frozenset()) != reduced:
        return "it reduces other dimensions than the reductions of its kernel"
    try:
        combiner_of(s)
    except PassError as error:
        return error.message
    return None

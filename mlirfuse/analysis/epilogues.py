"""What follows a contraction in its kernel: work on the tile of its result, totals over tiles, and work on totals.

A total is a reduction of what the tile holds, over dimensions of the result: rows' sums of squares, a column's maximum.
A block has its tile's part of it; the whole is known when all blocks along those dimensions are done, so what a tile
needs of a total would take a second kernel. So does a total over an extent that is known at run time: it may be 0, and
then there is no block at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.combining import combiner_of
from mlirfuse.analysis.contraction import Contraction, contraction_in
from mlirfuse.analysis.factors import producers
from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.structure import RENAMING_OPS, OpStructure
from mlirfuse.errors import PassError


@dataclass(frozen=True)
class Epilogue:
    """The ops behind a contraction, in program order.

    Attributes:
        tile: what works on the tile.
        totals: reductions, all over the same dimensions.
        finish: what works on totals.
    """

    tile: tuple[OpStructure, ...]
    totals: tuple[OpStructure, ...]
    finish: tuple[OpStructure, ...]


def epilogue_of(
    space: IterationSpace, contraction: Contraction, structures: Sequence[OpStructure]
) -> Epilogue | tuple[OpStructure, str]:
    """Sorts the ops behind a contraction, or says which of them cannot be there, and why."""
    tile: list[OpStructure] = []
    totals: list[OpStructure] = []
    finish: list[OpStructure] = []
    known_late: set[ir.Value] = set()
    for s in structures:
        late = any(operand in known_late for operand in s.operands)
        if reason := _problem(space, contraction, s, totals, late):
            return s, reason
        (totals if s.reduction_loops else finish if late else tile).append(s)
        if late or s.reduction_loops:
            known_late.update(s.op.results)
    return Epilogue(tuple(tile), tuple(totals), tuple(finish))


def misfit(space: IterationSpace, structures: Sequence[OpStructure]) -> str | None:
    """Why ops that have a contraction among them cannot share its kernel; None if they can, or have none.

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
    space: IterationSpace, contraction: Contraction, s: OpStructure, totals: Sequence[OpStructure], late: bool
) -> str | None:
    """Why an op cannot follow the contraction and the totals before it, or None."""
    if contraction.k in space.loops[s.op]:
        return "it runs along a dimension that a contraction sums over"
    reduced = {dim for total in totals for dim in space.reduced.get(total.op, frozenset())}
    if not s.reduction_loops:
        return "every tile would need a total of all tiles" if late and reduced & set(space.loops[s.op]) else None
    if late:
        return "it reduces what a total of all tiles is needed for"
    if any(space.extents[d] is None for d in space.reduced.get(s.op, frozenset())):
        return "it reduces a dynamic extent: where that is 0 there are no tiles, and no block to write the total"
    if totals and space.reduced.get(s.op, frozenset()) != reduced:
        return "it reduces other dimensions than the totals of its kernel"
    try:
        combiner_of(s)
    except PassError as error:
        return error.message
    return None

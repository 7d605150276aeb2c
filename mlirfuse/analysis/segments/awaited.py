"""What an op waits for besides the segment that computes what it reads, and could run before that segment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from mlir import ir

from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.schedule.contractions.grid import UNKNOWN_EXTENT
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import backward_slice


@dataclass(frozen=True)
class Awaited:
    """Ops of later segments that an op's operands are computed of, in no order.

    Attributes:
        before: reductions, what other ops read too, and what these are computed of; none of it depends on the segment.
        beside: the others, which can be computed where the op is.
    """

    before: frozenset[ir.Operation]
    beside: frozenset[ir.Operation]


@dataclass(frozen=True)
class Places:
    """Where the values of a function are computed.

    Attributes:
        structures: of the ops of segments.
        segment_of: the segment that computes a value.
        in_memory_from: the first segment that can read a value, or a view, from memory; 0 for all others.
    """

    structures: Mapping[ir.Operation, OpStructure]
    segment_of: Mapping[ir.Value, int]
    in_memory_from: Mapping[ir.Value, int]

    def awaited(self, structure: OpStructure, segment: int) -> Awaited | None:
        """What an op waits for that is computed behind a segment; None where no reduction is among it, and where some
        of it cannot run before the segment: it is computed of the segment's results, or is a view of what runs later.
        """
        found = self._behind(structure.operands, segment)
        if found is None or not any(self.structures[op].reduction_loops for op in found):
            return None
        inside = {*found, structure.op}
        first = [op for op in found if self.structures[op].reduction_loops or not _is_read_by(op, inside)]
        operands = [value for op in first for value in self.structures[op].operands]
        before = {*first, *backward_slice(operands, list(found))}
        made = (self.segment_of.get(value) for op in before for value in self.structures[op].operands)
        return None if segment in made else Awaited(frozenset(before), frozenset(found - before))

    def _behind(self, values: Iterable[ir.Value], segment: int) -> set[ir.Operation] | None:
        """Ops of segments behind one that values are computed of; None where a value is a view of what they make."""
        found, left = set[ir.Operation](), list(values)
        while left:
            value = left.pop()
            number = self.segment_of.get(value)
            if number is None and self.in_memory_from.get(value, 0) > segment:
                return None
            if number is None or number <= segment or value.owner.operation in found:
                continue
            found.add(value.owner.operation)
            left += self.structures[value.owner.operation].operands
        return found


def shared_bytes(first: Iterable[OpStructure], second: Iterable[OpStructure]) -> int:
    """Bytes of what two groups of ops read both, and of what the second reads of the first."""
    first, second = list(first), list(second)
    read = {value for s in second for value in s.operands}
    made = {value for s in first for value in (*s.operands, *s.op.results)}
    return sum(map(size, read & made))


def size(value: ir.Value) -> int:
    """Bytes of a value, with extents of run time counted as `UNKNOWN_EXTENT`."""
    if not isinstance(value.type, ir.RankedTensorType):
        return 0
    type_ = ir.RankedTensorType(value.type)
    extents = (UNKNOWN_EXTENT if type_.is_dynamic_dim(d) else n for d, n in enumerate(type_.shape))
    return prod(extents) * from_mlir(type_.element_type).bytes


def _is_read_by(op: ir.Operation, group: set[ir.Operation]) -> bool:
    """Whether only ops of a group read an op's results."""
    return all(use.owner.operation in group for result in op.results for use in result.uses)

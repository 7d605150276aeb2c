"""Grouping the ops of a function into segments: one segment becomes one kernel.

A producer and its consumers stay together while they share one iteration space, so that the intermediate never leaves
the chip. Ops join greedily in program order; a segment takes an op when

- the loops of all its ops unify without a conflict,
- one op's loops span the whole space (otherwise the tile would iterate over a product that no op has),
- a contraction among its ops comes first, and the others work on tiles of its result
  (`analysis/contractions/epilogues.py`),
- all other reductions reduce the same dimensions (those over different ones are `fuse-mix-order-reduction`'s),
- a reduction over a dynamic extent, which takes the whole grid, feeds nothing that would need a second pass.

Segments run in order, so an op may join only a segment that does not run before one of its producers. Segments that
an op reads from become one where they and the op fit together, and nothing in between needs the earlier one. In the end
so do elementwise segments that read the same data of the whole space, which one kernel reads once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.grid_reduction import grid_reduction
from mlirfuse.analysis.incremental_space import IncrementalSpace
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure, is_constant, is_unit_reshape, structure_of

CHEAP_OPS = frozenset({"arith.constant", "tensor.empty", "tensor.dim", "linalg.fill"})
"""Ops that are cloned into every segment that uses them rather than computed once."""

RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})

RESHAPED = (
    "it reads its producer's result in a shape with other dimensions, which that has in memory only: "
    "work in the producer's shape, and reshape last"
)


@dataclass
class Segment:
    """A group of ops that becomes one kernel.

    Attributes:
        ops: the member ops, in program order, without cheap ops.
        space: what they run over, for ops that may join them.
    """

    ops: list[ir.Operation]
    space: IncrementalSpace


@dataclass(frozen=True)
class Segmentation:
    """The segments in launch order, and why neighbours were kept apart.

    Attributes:
        segments: in launch order.
        declined: (op, reason) pairs: why an op did not join the segment of a producer.
    """

    segments: Sequence[Segment]
    declined: Sequence[tuple[ir.Operation, str]]


def joint_space(structures: Sequence[OpStructure]) -> IterationSpace | Conflict:
    """The iteration space of ops that are to share a kernel, or why they cannot."""
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        return space
    last = structures[-1].op
    contraction = contraction_in(space, structures)
    summed = set() if contraction is None else {contraction.structure.op}
    if len({dims for op, dims in space.reduced.items() if op not in summed}) > 1:
        return Conflict("it reduces other dimensions than its producers do", last)
    if not space.spanned():
        return Conflict("no op's loops span the joint iteration space", last)
    if reason := misfit(space, structures):
        return Conflict(reason, last)
    if any(space.extents[d] is None for d in space.reduced_dims) and contraction is None:
        plan = grid_reduction(space, structures)
        return plan if isinstance(plan, Conflict) else space
    return space


def segment_ops(ops: Sequence[ir.Operation]) -> Segmentation:
    """Groups the ops of a function's body."""
    return _Planner(ops).run()


def _is_final_view(op: ir.Operation) -> bool:
    """Whether a transpose, or a reshape that moves nothing, is only returned; after it, a result may be transposed."""
    if op.name not in RENAMING_OPS or not list(op.results[0].uses):
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    if op.name == "linalg.transpose":
        return all(user.name == "func.return" for user in users)
    return is_unit_reshape(op) and all(user.name == "func.return" or _is_final_view(user) for user in users)


class _Planner:
    def __init__(self, ops: Sequence[ir.Operation]):
        self.ops = ops
        self.order = {op: n for n, op in enumerate(ops)}
        self.segments: list[Segment] = []
        self.structures: dict[ir.Operation, OpStructure] = {}
        self.home: dict[ir.Value, int] = {}
        self.in_memory_from: dict[ir.Value, int] = {}
        self.declined: list[tuple[ir.Operation, str]] = []

    def run(self) -> Segmentation:
        for op in self.ops:
            if op.name in CHEAP_OPS or not op.results:
                continue
            if self._is_host_view(op):
                source = op.operands[0]
                self.in_memory_from[op.results[0]] = self.in_memory_from.get(source, 0)
                continue
            structure = structure_of(op)
            if structure is not None:
                self.structures[op] = structure
                self._join_producers(structure)
                self._place(structure)
        self._join_readers()
        return Segmentation(self.segments, self.declined)

    def _is_host_view(self, op: ir.Operation) -> bool:
        """Views of whole buffers stay on the host: reshapes of values in memory, or that split or merge extents, and
        ops that give a result its final shape. A function that only returns views launches nothing.
        """
        if op.name in RESHAPES and (op.operands[0] not in self.home or not is_unit_reshape(op)):
            return True
        return _is_final_view(op)

    def _join_producers(self, structure: OpStructure) -> None:
        """Joins the segments that an op reads from, where they and the op fit together.

        Ops on different arguments start segments apart, until an op reads results of both. The op itself can join only
        the last of these segments, so that the others join that one or stay.
        """
        *others, last = sorted({self.home[o] for o in structure.operands if o in self.home}) or [-1]
        if self._earliest(structure) > last:
            return  # it reads a view of what is in memory only after that one
        for first in reversed(others):
            ops = self._together(first, last)
            joint = joint_space([*(self.structures[o] for o in ops), structure])
            if isinstance(joint, IterationSpace) and self._may_wait(first, last):
                self._merge(first, last)
                last -= 1  # the gap has closed

    def _together(self, first: int, last: int) -> list[ir.Operation]:
        """The ops of two segments, in program order."""
        return sorted([*self.segments[first].ops, *self.segments[last].ops], key=self.order.__getitem__)

    def _join_readers(self) -> None:
        """Joins elementwise segments that read the same data of the whole space.

        `a * 2 + x` and `b * 3 + x` start from arguments of their own, and only their second ops share one. With
        reductions, holding values of both segments on chip may cost more than the read.
        """
        last = 1
        while last < len(self.segments):
            first = next((n for n in range(last) if self._share(n, last) and self._may_wait(n, last)), None)
            if first is None:
                last += 1
            else:
                self._merge(first, last)
                last -= 1

    def _share(self, first: int, last: int) -> bool:
        """Whether two segments are elementwise, read an operand of the whole space alike, and make results laid out
        alike.
        """
        structures = [[self.structures[op] for op in self.segments[number].ops] for number in (first, last)]
        together = [s for segment in structures for s in segment]
        if any(s.reduction_loops for s in together):
            return False
        if not set.intersection(*({o for s in segment for o in s.operands} for segment in structures)):
            return False
        space = joint_space(together)
        if isinstance(space, Conflict):
            return False
        whole = set(range(space.rank))
        made = {axes for axes in space.value_axes.values() if set(axes) == whole}
        read = [
            {o for s in segment for n, o in enumerate(s.operands) if space.use_axes.get((s.op, n)) in made}
            for segment in structures
        ]
        return len(made) == 1 and bool(set.intersection(*read))

    def _may_wait(self, first: int, last: int) -> bool:
        """Whether a segment may run as late as another: no op in between reads its results, not even as a view."""
        for op in self.segments[first].ops:
            for result in op.results:
                for use in result.uses:
                    user = use.owner.operation
                    placed = {self.home[r] for r in user.results if r in self.home}
                    is_view = any(r in self.in_memory_from and r not in self.home for r in user.results)
                    if is_view or not placed <= {first, last}:
                        return False
        return True

    def _merge(self, first: int, last: int) -> None:
        """Moves a segment's ops into a later one, in program order, and closes the gap."""
        together = self._together(first, last)
        self.segments.pop(first)
        self.segments[last - 1] = self._segment(together)
        for op in self.segments[last - 1].ops:
            for result in op.results:
                self.home[result] = last
                self.in_memory_from[result] = last + 1
        self.home = {value: index - (index > first) for value, index in self.home.items()}
        self.in_memory_from = {value: index - (index > first) for value, index in self.in_memory_from.items()}

    def _place(self, structure: OpStructure) -> None:
        op = structure.op
        reason = None
        for index in range(self._earliest(structure), len(self.segments)):
            if not self._related(structure, index):
                continue
            reason_here = self._take(self.segments[index], structure)
            if reason_here is None:
                self._settle(op, index)
                return
            reason = reason or reason_here
        if reason is None and any(self._is_reshaped_result(operand) for operand in structure.operands):
            reason = RESHAPED
        if reason:
            self.declined.append((op, reason))
        self.segments.append(self._segment([op]))
        self._settle(op, len(self.segments) - 1)

    def _earliest(self, structure: OpStructure) -> int:
        """The first segment that an op may be in: none that runs before what it reads is made, or in memory."""
        return max((self.home.get(o, self.in_memory_from.get(o, 0)) for o in structure.operands), default=0)

    def _is_reshaped_result(self, value: ir.Value) -> bool:
        """Whether a value is a view on the host of a segment's result."""
        source = value
        while source not in self.home and source in self.in_memory_from:
            source = source.owner.operation.operands[0]
        return source != value and source in self.home

    def _related(self, structure: OpStructure, index: int) -> bool:
        """Whether the op shares a value with the segment: one that it makes, or one that both read."""
        reads = self.segments[index].space.reads
        return any(self.home.get(o) == index or o in reads for o in structure.operands if not is_constant(o))

    def _take(self, segment: Segment, structure: OpStructure) -> str | None:
        """Adds an op to a segment, or says why it cannot join."""
        if not segment.space.take(structure):
            structures = [*(self.structures[o] for o in segment.ops), structure]
            space = joint_space(structures)
            if isinstance(space, Conflict):
                return space.reason
            segment.space = IncrementalSpace.of(space, structures)
        segment.ops.append(structure.op)
        return None

    def _settle(self, op: ir.Operation, index: int) -> None:
        """Notes which segment makes an op's results, and from which segment on they are in memory."""
        for result in op.results:
            self.home[result] = index
            self.in_memory_from[result] = index + 1

    def _segment(self, ops: list[ir.Operation]) -> Segment:
        """A segment of ops; those of several fit together."""
        structures = [self.structures[op] for op in ops]
        space = space_of_structures(structures)
        assert isinstance(space, IterationSpace)
        return Segment(ops, IncrementalSpace.of(space, structures))

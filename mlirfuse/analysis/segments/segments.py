"""Grouping the ops of a function into segments: one segment becomes one kernel.

A producer and its consumers stay together while they share one iteration space, so that the intermediate never leaves
the chip. Ops join greedily in program order; a segment takes an op when

- the loops of all its ops unify without a conflict,
- one op's loops span the whole space (otherwise the tile would iterate over a product that no op has),
- a contraction among its ops comes first, and the others work on tiles of its result
  (`analysis/contractions/epilogues.py`),
- all other reductions reduce the same dimensions (those over different ones are `fuse-mix-order-reduction`'s),
- a reduction over a dynamic extent, which takes the whole grid, feeds nothing that would need a second pass.

Segments run in order, so an op may join only a segment that does not run before one of its producers. Reductions that
an op waits for may run before the segment that has the rest of what it reads (`awaited.py`). Segments that an op reads
from become one where they and the op fit together, and nothing in between needs the earlier one. In the end
so do elementwise segments that read the same data of the whole space, which one kernel reads once.

Where fusion is off (`fuse.operation`), only ops that one call of the user made share a segment.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in, products_of
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.grid_reduction import grid_reduction
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import OpStructure, is_constant, is_unit_reshape, structure_of
from mlirfuse.analysis.memory.host_views import RESHAPES as RESHAPES
from mlirfuse.analysis.memory.host_views import is_diagonal, is_host_view, layout_of, rearranged_axes, view_layout
from mlirfuse.analysis.segments.awaited import Awaited, Places, shared_bytes, size
from mlirfuse.analysis.segments.incremental_space import IncrementalSpace
from mlirfuse.analysis.segments.operations import separated
from mlirfuse.dialect.gathered_view import DEFINITION

CHEAP_OPS = frozenset({"arith.constant", "tensor.empty", "tensor.dim", "linalg.fill"})
"""Ops that are cloned into every segment that uses them rather than computed once."""

GATHERED = DEFINITION.full_name

RESHAPED = (
    "it reads its producer's result reshaped to other dimensions, which takes the result in memory: "
    "compute in the producer's shape, and reshape last"
)


@dataclass
class Segment:
    """A group of ops that becomes one kernel.

    Attributes:
        ops: the ops in program order, without `CHEAP_OPS`.
        space: the ops' iteration space, to which further ops may be added.
    """

    ops: list[ir.Operation]
    space: IncrementalSpace


@dataclass(frozen=True)
class Segmentation:
    """The segments of a function, and why ops are not in their producers' segments.

    Attributes:
        segments: the segments in launch order.
        declined: (op, reason) pairs of ops that did not join the segment of a producer.
    """

    segments: Sequence[Segment]
    declined: Sequence[tuple[ir.Operation, str]]


def joint_space(structures: Sequence[OpStructure]) -> IterationSpace | Conflict:
    """The iteration space of ops for one kernel, or why the ops cannot share a kernel."""
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        return space
    last = structures[-1].op
    contraction = contraction_in(space, structures)
    summed = set() if contraction is None else {contraction.structure.op}
    if len({dims for op, dims in space.reduced.items() if op not in summed}) > 1:
        return Conflict("it reduces other dimensions than its producers do", last)
    if not space.spanned():
        return Conflict("no op runs over all dimensions that the ops have together", last)
    if reason := misfit(space, structures):
        return Conflict(reason, last)
    if any(space.extents[d] is None for d in space.reduced_dims) and contraction is None:
        plan = grid_reduction(space, structures)
        return plan if isinstance(plan, Conflict) else space
    return space


def segment_ops(ops: Sequence[ir.Operation]) -> Segmentation:
    """Groups the ops of a function's body."""
    return _Planner(ops).run()


def needs_memory(op: ir.Operation) -> bool:
    """Whether an op reads its operand from memory wherever the operand comes from: a view that no kernel computes."""
    return op.name == "tensor.extract_slice" or is_diagonal(op) or (op.name in RESHAPES and not is_unit_reshape(op))


def _is_final_view(op: ir.Operation, *, computed: bool) -> bool:
    """Whether a view is only returned, or only seen through further views of this kind.

    A view of an array that a kernel computes (`computed`) is written by that kernel where another kernel reads it.
    """
    if op.name not in RESHAPES and (rearranged_axes(op) is None or is_constant(op.operands[0])):
        return False
    users = [use.owner.operation for use in op.results[0].uses]

    def leaves(user: ir.Operation) -> bool:
        if needs_memory(user):
            return (not computed or _is_returned(user)) and _is_view_of_memory(user)
        return user.name == "func.return" or _is_final_view(user, computed=computed)

    return bool(users) and all(map(leaves, users))


def _is_view_of_memory(op: ir.Operation) -> bool:
    """Whether a view needs no copy of its operand, which itself is a view."""
    return view_layout(op, layout_of(op.operands[0])) is not None


def _is_returned(view: ir.Operation) -> bool:
    """Whether a view is only returned, through further views or not."""
    users = [use.owner.operation for use in view.results[0].uses]
    return all(user.name == "func.return" or (is_host_view(user) and _is_returned(user)) for user in users)


class _Planner:
    def __init__(self, ops: Sequence[ir.Operation]):
        self.ops = ops
        self.order = {op: n for n, op in enumerate(ops)}
        self.segments: list[Segment] = []
        self.structures: dict[ir.Operation, OpStructure] = {}
        self.segment_of: dict[ir.Value, int] = {}
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
                if not self._run_before(structure):
                    self._assign(structure)
        self._join_readers()
        return Segmentation(self.segments, self.declined)

    def _is_host_view(self, op: ir.Operation) -> bool:
        """Views of values in memory stay on the host: slices, diagonals, reshapes of whole buffers or that split or
        merge extents, and views that are returned. A function that only returns views launches nothing. Where fusion
        is off, the results of other calls are in memory.
        """
        if op.name in ("tensor.extract_slice", GATHERED) or is_diagonal(op):
            return True
        if op.name in RESHAPES:
            source = op.operands[0]
            if source not in self.segment_of or not is_unit_reshape(op) or separated([source.owner.operation], [op]):
                return True
            if all(needs_memory(use.owner.operation) for use in op.results[0].uses):
                return True
        return _is_final_view(op, computed=op.operands[0] in self.segment_of)

    def _join_producers(self, structure: OpStructure) -> None:
        """Joins the segments that an op reads from, if they and the op fit into one kernel.

        Ops on different arguments start different segments; a later op may read results of several. This op can join
        only the last of its producers' segments, so earlier ones are merged into the last one where possible.
        """
        of = {self.segment_of[o] for o in structure.operands if o in self.segment_of}
        *others, last = sorted(n for n in of if not separated(self.segments[n].ops[:1], [structure.op])) or [-1]
        if self._first_possible(structure) > last:
            return  # the op reads a view of a result that is in memory only after the last segment
        viewed = {
            self.segment_of[v] for o in structure.operands if (v := self._viewed(o)) != o and v in self.segment_of
        }
        for first in reversed(others):
            if first in viewed:
                continue  # what the op reads a view of would be in memory only after both, and the op not among them
            ops = self._merged_ops(first, last)
            space = joint_space([*(self.structures[o] for o in ops), structure])
            if isinstance(space, IterationSpace) and self._may_wait(first, last):
                self._merge(first, last)
                last -= 1  # `_merge` removes a segment

    def _merged_ops(self, first: int, last: int) -> list[ir.Operation]:
        """The ops of two segments, in program order."""
        return sorted([*self.segments[first].ops, *self.segments[last].ops], key=self.order.__getitem__)

    def _join_readers(self) -> None:
        """Joins elementwise segments that read the same operand of the whole space.

        Such are `a * 2 + x` and `b * 3 + x`, whose first ops share no operand. Segments with reductions are not joined,
        because values of both on chip may cost more than the second read of the operand.
        """
        last = 1
        while last < len(self.segments):
            first = next((n for n in range(last) if self._can_share(n, last) and self._may_wait(n, last)), None)
            if first is None:
                last += 1
            else:
                self._merge(first, last)
                last -= 1

    def _can_share(self, first: int, last: int) -> bool:
        """Whether two segments are elementwise, read an operand of the whole space, and have like axes."""
        if separated(*(self.segments[number].ops[:1] for number in (first, last))):
            return False
        structures = [[self.structures[op] for op in self.segments[number].ops] for number in (first, last)]
        merged = [s for segment in structures for s in segment]
        if any(s.reduction_loops for s in merged):
            return False
        if not set.intersection(*({o for s in segment for o in s.operands} for segment in structures)):
            return False
        space = joint_space(merged)
        if isinstance(space, Conflict):
            return False
        whole = set(range(space.rank))
        results = {axes for axes in space.value_axes.values() if set(axes) == whole}
        read = [
            {o for s in segment for n, o in enumerate(s.operands) if space.use_axes.get((s.op, n)) in results}
            for segment in structures
        ]
        return len(results) == 1 and bool(set.intersection(*read))

    def _may_wait(self, first: int, last: int) -> bool:
        """Whether segment `first` may run as late as `last`: no op in between reads its results, and none up to the end
        of `last` a view of these, which is in memory only after it.
        """
        results = [result for op in self.segments[first].ops for result in op.results]
        return all(self._reads_late(result, last, within={first, last}) for result in results)

    def _reads_late(self, value: ir.Value, last: int, within: Set[int] = frozenset()) -> bool:
        """Whether all segments that read a value, or views of it, run after `last`; `within` may read the value too."""
        for use in value.uses:
            for result in use.owner.operation.results:
                number = self.segment_of.get(result)
                if number is not None and number not in within and number <= last:
                    return False
                if number is None and result in self.in_memory_from and not self._reads_late(result, last):
                    return False
        return True

    def _merge(self, first: int, last: int) -> None:
        """Moves the ops of segment `first` into segment `last`, in program order, and removes segment `first`."""
        self.segments[last] = self._segment(self._merged_ops(first, last))
        self.segments.pop(first)
        self._number()

    def _number(self) -> None:
        """Records where values are computed once segments stand in another order."""
        self.segment_of = {
            result: n for n, segment in enumerate(self.segments) for op in segment.ops for result in op.results
        }
        moved, self.in_memory_from = self.in_memory_from, {}
        for value in moved:  # in program order: a view stands behind what it is a view of
            of = self.segment_of.get(value)
            source = 0 if of is not None else self.in_memory_from.get(value.owner.operation.operands[0], 0)
            self.in_memory_from[value] = source if of is None else of + 1

    def _run_before(self, structure: OpStructure) -> bool:
        """Lets what an op waits for run before a segment with a value of the whole space that the op reads, and adds
        the op to it: the number of masked elements, that gradients are divided by, comes before the losses.

        What is waited for is apart then from other ops of its segment, which may read again what both read. Products
        stay where they are: other passes give them what is read with them.
        """
        places = Places(self.structures, self.segment_of, self.in_memory_from)
        for n in reversed(range(self._first_possible(structure))):
            saved = self._whole_bytes(structure, n)
            if not saved or separated(self.segments[n].ops[:1], [structure.op]):
                continue
            awaited = places.awaited(structure, n)
            if awaited is None or self._multiply([*self.segments[n].ops, *awaited.before]):
                continue
            if awaited.beside and separated([structure.op], awaited.beside):
                continue
            groups, cost = self._reordered(structure, n, awaited)
            if cost < saved and self._are_kernels(groups):
                self.segments[max(0, n - 1) :] = map(self._segment, groups)
                self._record(structure.op, n)
                self._number()
                return True
        return False

    def _multiply(self, ops: Sequence[ir.Operation]) -> bool:
        """Whether one of some ops sums up products."""
        return any(products_of(op) for op in ops)

    def _whole_bytes(self, structure: OpStructure, index: int) -> int:
        """Bytes of values along all of a segment's space that the segment has, and an op reads."""
        space = self.segments[index].space
        whole = {d for d, extent in enumerate(space.extents) if extent != 1}
        return sum(size(o) for o in structure.operands if whole <= {*(space.axes.get(o) or ())})

    def _reordered(self, structure: OpStructure, index: int, awaited: Awaited) -> tuple[list[list[ir.Operation]], int]:
        """The ops of segments from the one in front of a segment on, once this runs behind what an op waits for and has
        the op; and the bytes that more than one of them then reads.
        """
        early, left, cost = [segment.ops for segment in self.segments[:index][-1:]], list[list[ir.Operation]](), 0
        for segment in self.segments[index + 1 :]:
            first = [op for op in segment.ops if op in awaited.before]
            rest = [op for op in segment.ops if op not in awaited.before | awaited.beside]
            cost += self._shared_bytes(first, rest)
            left += [rest] if rest else []
            may_share = early and first and not separated(early[-1][:1], first[:1])
            together = [*early[-1], *first] if may_share and self._shared_bytes(early[-1], first) else []
            if together and self._are_kernels([together]):
                early[-1] = together
            elif first:
                early.append(first)
        joined = sorted([*self.segments[index].ops, *awaited.beside, structure.op], key=self.order.__getitem__)
        return [*early, joined, *left], cost

    def _shared_bytes(self, first: Sequence[ir.Operation], second: Sequence[ir.Operation]) -> int:
        return shared_bytes(*([self.structures[op] for op in ops] for ops in (first, second)))

    def _are_kernels(self, groups: Sequence[Sequence[ir.Operation]]) -> bool:
        """Whether each of several groups of ops, in program order, fits into one kernel."""
        spaces = (joint_space([self.structures[op] for op in ops]) for ops in groups)
        return not any(isinstance(space, Conflict) for space in spaces)

    def _assign(self, structure: OpStructure) -> None:
        op = structure.op
        reason = None
        for index in range(self._first_possible(structure), len(self.segments)):
            if not self._shares_value(structure, index):
                continue
            reason_here = self._try_add(self.segments[index], structure)
            if reason_here is None:
                self._record(op, index)
                return
            reason = reason or reason_here
        reshaped = next((maker for operand in structure.operands if (maker := self._reshaped_result(operand))), None)
        if reason is None and reshaped is not None:
            reason = separated([reshaped], [op]) or RESHAPED
        if reason:
            self.declined.append((op, reason))
        self.segments.append(self._segment([op]))
        self._record(op, len(self.segments) - 1)

    def _first_possible(self, structure: OpStructure) -> int:
        """The first segment that an op may join: its operands must be computed there or earlier, or be in memory."""
        return max((self.segment_of.get(o, self.in_memory_from.get(o, 0)) for o in structure.operands), default=0)

    def _reshaped_result(self, value: ir.Value) -> ir.Operation | None:
        """The op of a segment whose result a value is a view of on the host; None for any other value."""
        source = self._viewed(value)
        return source.owner.operation if source != value and source in self.segment_of else None

    def _viewed(self, value: ir.Value) -> ir.Value:
        """What a value is a view of on the host; the value itself for any other."""
        while value not in self.segment_of and value in self.in_memory_from:
            value = value.owner.operation.operands[0]
        return value

    def _shares_value(self, structure: OpStructure, index: int) -> bool:
        """Whether an op reads a result of a segment, or an operand that the segment reads too."""
        reads = self.segments[index].space.reads
        return any(self.segment_of.get(o) == index or o in reads for o in structure.operands if not is_constant(o))

    def _try_add(self, segment: Segment, structure: OpStructure) -> str | None:
        """Adds an op to a segment, or says why it cannot join."""
        if reason := separated(segment.ops[:1], [structure.op]):
            return reason
        if not segment.space.try_add(structure):
            structures = [*(self.structures[o] for o in segment.ops), structure]
            space = joint_space(structures)
            if isinstance(space, Conflict):
                return space.reason
            segment.space = IncrementalSpace.of(space, structures)
        segment.ops.append(structure.op)
        return None

    def _record(self, op: ir.Operation, index: int) -> None:
        """Records the segment that computes an op's results, and the first segment that can read them from memory."""
        for result in op.results:
            self.segment_of[result] = index
            self.in_memory_from[result] = index + 1

    def _segment(self, ops: list[ir.Operation]) -> Segment:
        """A segment of ops that are known to share an iteration space."""
        structures = [self.structures[op] for op in ops]
        space = space_of_structures(structures)
        assert isinstance(space, IterationSpace)
        return Segment(ops, IncrementalSpace.of(space, structures))

"""`fuse-store-operands`: functions of one array that pairs of its elements with others share are stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import instructions_of
from mlirfuse.analysis.arithmetic.ranges import RangeOf, Ranges
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.structure import OpStructure, is_constant
from mlirfuse.analysis.memory.host_views import is_memory_view
from mlirfuse.analysis.segments.segments import CHEAP_OPS
from mlirfuse.dialect.attributes import STORED
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.slices.sliced_ops import is_elementwise, readers
from mlirfuse.passes.trials.trial import MOST_OPS, compare, computing, needing, surrounded
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.contractions.grid import UNKNOWN_EXTENT
from mlirfuse.schedule.predict.counts.instructions import ACCESS_INSTRUCTIONS, SPECIAL_INSTRUCTIONS
from mlirfuse.support.connected import connected
from mlirfuse.support.rewriting import defining_op, read_values


@dataclass(frozen=True)
class FuseStoreOperands(Pass):
    """Marks ops with `fuse.stored` whose results pairs of elements share, where kernels then clearly take less time.

    Requires functions of tensor ops. Of all pairs of rows of two arrays, a kernel computes what depends on one row
    alone again for each tile of pairs: the logarithms of two lists of distributions, for one, of which divergences take
    differences. So does a kernel with the sines of one row of angles by which it multiplies all rows of an array.
    Stored by a kernel of their own they are computed once, and loaded in place of what they are computed of. An op is
    marked with the elementwise ops that nothing but marked ops need, through views, if together they take more
    instructions than a load, and an op reads its result all of whose operands lack one of its loops; or of which this
    one does, where it is computed of arguments alone and computing it again takes longer than a launch. Both forms,
    with the ops before and behind, are scheduled on trial. What stands behind a gathered view is read from memory then,
    as `fuse-compose-gathers` leaves such views.

    ```mlir
    %l = linalg.generic ... ins(%p : tensor<512x1000xf32>) ... { ... math.log ... } -> tensor<512x1000xf32>
    %d = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, ...]}
        ins(%l, %m : tensor<512x1000xf32>, tensor<512x1000xf32>) ... { ... arith.subf ... } -> tensor<512x512x1000xf32>
    ```
    becomes
    ```mlir
    %l = linalg.generic ... ins(%p : tensor<512x1000xf32>) ... attrs = {fuse.stored} { ... math.log ... } -> ...
    %d = linalg.generic ... ins(%l, %m : tensor<512x1000xf32>, tensor<512x1000xf32>) ... -> tensor<512x512x1000xf32>
    ```

    Attributes:
        always: whether such results are stored whatever is predicted.
    """

    name: ClassVar[str] = "fuse-store-operands"
    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Marks ops of the `builtin.module` in place."""
        machine = machine_of(target_of_module(module), device_of_module(module))
        for function in host_functions(module):
            found = _groups(function, machine)
            if not found:
                remarks.declined(self, "no iterations share what takes longer to compute than to load", function)
            for group in found:
                first = next(op for op in body(function) if op in group)
                times = f"{len(group)} op(s) on what iterations share"
                if not self.always:
                    ops = surrounded(group)
                    if len(ops) > MOST_OPS:
                        remarks.declined(self, f"{times} would be tried with over {MOST_OPS} ops", first)
                        continue
                    trial = compare(module, function, ops, partial(_mark_copies, group))
                    times += (
                        f" are predicted to take {trial.after:.1f} us stored, {trial.before:.1f} us where they are read"
                    )
                    if not trial.gains:
                        remarks.declined(self, times, first)
                        continue
                remarks.applied(self, times, first)
                _mark(group)


def _groups(function: ir.Operation, machine: MachineModel) -> list[set[ir.Operation]]:
    """The ops to store: those together whose results reach one op, or that need one op.

    Products are left out: what their operands are computed in, `fuse-prologues` decides.
    """
    shared = [(op, _shared_operands(structure)) for op in body(function) if (structure := computing(op)) is not None]
    makers = {value: maker for _, (values, *_) in shared for value in values if (maker := _maker(value)) is not None}
    alone, range_of = _needed_alone(function, set(makers.values())), Ranges().of
    found: list[tuple[ir.Operation, set[ir.Operation]]] = []
    for op, (values, whole, elements) in shared:
        stored: set[ir.Operation] = set()
        for maker in {makers[value] for value in values if value in makers}:
            own = _with_needed(maker, alone)
            instructions = _instructions(own, range_of)
            if instructions <= ACCESS_INSTRUCTIONS:
                continue
            if whole and not (_is_of_arguments(own) and _again(instructions, elements, machine) > machine.next_launch):
                continue
            stored |= own
        if stored:
            found.append((op, stored))
    groups = connected(found, lambda each: {each[0], *needing([each[0]]), *each[1]})
    return [{op for _, stored in group for op in stored} for group in groups]


def _maker(value: ir.Value) -> ir.Operation | None:
    """The elementwise op that computes a value; None for any other value."""
    maker = defining_op(value)
    return maker if maker is not None and is_elementwise(maker) else None


def _needed_alone(function: ir.Operation, makers: set[ir.Operation]) -> set[ir.Operation]:
    """Elementwise ops of which nothing but some others need the results, through views."""
    found = set(makers)
    for op in reversed(body(function)):
        if op not in found and is_elementwise(op):
            users = set(readers(op, is_memory_view))
            if users and users <= found:
                found.add(op)
    return found


def _with_needed(maker: ir.Operation, alone: set[ir.Operation]) -> set[ir.Operation]:
    """An op, and those of some others that it needs, by way of them and of views alone."""
    found, open_ = {maker}, [maker]
    while open_:
        for operand in open_.pop().operands:
            before = _seen(operand, alone)
            if before in alone and before not in found:
                found.add(before)
                open_.append(before)
    return found


def _seen(value: ir.Value, ops: set[ir.Operation]) -> ir.Operation | None:
    """What makes a value, or what it is a view of; views are looked through but for some ops. None for an argument."""
    maker = defining_op(value)
    while maker is not None and maker not in ops and is_memory_view(maker):
        maker = defining_op(maker.operands[0])
    return maker


def _shared_operands(structure: OpStructure) -> tuple[list[ir.Value], bool, int]:
    """The operands of an op that lack one of its loops, whether any other operand has all of them, and its elements."""
    inputs = [
        (value, axes, extents)
        for value, axes, extents in zip(
            structure.operands, structure.operand_axes, structure.operand_extents, strict=True
        )
        if axes and not is_constant(value)
    ]
    extents = {loop: n for _, axes, sizes in inputs for loop, n in zip(axes, sizes, strict=True) if loop is not None}
    loops = {loop for loop, n in extents.items() if n != 1}
    shared = [value for value, axes, _ in inputs if not loops <= set(axes)]
    elements = prod(UNKNOWN_EXTENT if n is None else n for n in extents.values())
    return (shared if len(inputs) > 1 else []), len(shared) < len(inputs), elements


def _is_of_arguments(ops: set[ir.Operation]) -> bool:
    """Whether ops read nothing but each other, arguments of the function and views of these, and constants."""
    makers = (_seen(value, ops) for op in ops for value in read_values(op))
    return all(maker is None or maker in ops or maker.name in CHEAP_OPS for maker in makers)


def _again(instructions: float, elements: int, machine: MachineModel) -> float:
    """Seconds in which so many instructions compute each of so many elements, rather than load it."""
    return elements * (instructions - ACCESS_INSTRUCTIONS) / (machine.issue_per_sm * machine.sms)


def _instructions(ops: set[ir.Operation], range_of: RangeOf) -> float:
    """Instructions of an element of ops together, those of special-function units at their price."""
    counts = [instructions_of(op, range_of) for op in ops]
    return sum(count.plain + SPECIAL_INSTRUCTIONS * count.special for count in counts)


def _mark(ops: set[ir.Operation]) -> None:
    for op in ops:
        op.attributes[STORED] = ir.UnitAttr.get(op.context)


def _mark_copies(ops: set[ir.Operation], copies: dict[ir.Operation, ir.Operation]) -> None:
    _mark({copies[op] for op in ops})

"""`fuse-peel-persistent-loop`: stores a block's partial results before the rows of its last tile are reduced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, scf

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.passes.layouts.reduction_points import REDUCTIONS, reduced_dims
from mlirfuse.passes.pipelining.mask_elimination import drop_masks
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import backward_slice, clone, defining_op, erase, nested

ARRIVE = "fuse.semaphore_arrive"
WAIT_GROUP = "nvvm.cp.async.wait.group"
LOADS = ("fuse.copy_fragments", "nvvm.cp.async.commit.group", WAIT_GROUP)
"""Ops of a step that load data for that step and for later ones."""
WRITE = "vector.transfer_write"
ATOMICS = ("memref.atomic_rmw", "memref.generic_atomic_rmw")


@dataclass(frozen=True)
class FusePeelPersistentLoop(Pass):
    """Peels the last step of a persistent loop, and stores the block's partial results in the middle of that step.

    Requires tile programs whose schedule has a `persistent_loop` with `peeled`. The grid reductions of a step must need
    only its data, not the results of its row reductions (a thread's own sums over the rows that it is unrolled over
    count as part of the grid reductions). In the last step the partial results are then completed first and stored, and
    the block arrives at the semaphore, before the rows are reduced and the step's results are written. The stores and
    the arrival overlap with the rest of the step. Blocks without tiles take a branch that only arrives. The last step
    starts no loads for later steps, and waits for all earlier ones. Only the last tile may reach past the end of the
    data: masks of the others are dropped.

    ```mlir
    %sums = scf.for %t = %block to %tiles step %blocks iter_args(%acc = %zero) -> (vector<1x4096xf32>) {
      %x = vector.transfer_read %a[%t, %c0] ...
      %r = vector.multi_reduction <add>, %x, %none [1]
      %next = arith.addf %acc, %x
      vector.transfer_write %y, %out[%t, %c0]
    }
    scf.if %has_tile { vector.transfer_write %partial, %partials[%block, %c0] }
    "fuse.semaphore_arrive"(%semaphores, %c0, %limit)
    ```
    becomes
    ```mlir
    %stop = arith.subi %tiles, %blocks
    %sums, %last = scf.for %t = %block to %stop step %blocks iter_args(%acc = %zero, %at = %block) { ... }
    scf.if %has_tile {
      %x = vector.transfer_read %a[%last, %c0] ...
      %sum = arith.addf %sums, %x
      vector.transfer_write %partial, %partials[%block, %c0]
      "fuse.semaphore_arrive"(%semaphores, %c0, %limit)
      %r = vector.multi_reduction <add>, %x, %none [1]
      vector.transfer_write %y, %out[%last, %c0]
    } else {
      "fuse.semaphore_arrive"(%semaphores, %c0, %limit)
    }
    ```
    """

    name: ClassVar[str] = "fuse-peel-persistent-loop"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.persistent_loop is None:
                continue
            if not schedule.persistent_loop.peeled:
                remarks.declined(self, "scheduled with all steps in the loop", kernel)
                continue
            found = _peelable(kernel, schedule.layout)
            if isinstance(found, str):
                remarks.declined(self, found, kernel)
                continue
            with ir.InsertionPoint(found.loop), found.loop.location:
                _peel(found)
            before, after = len(found.reduction_ops), len(found.remaining_ops)
            remarks.applied(self, f"{before} of a step's ops before the partials are stored, {after} after", kernel)


@dataclass(frozen=True)
class _PeeledLoop:
    """A loop over the tiles of a block, and the order of its last step.

    Attributes:
        loop: the loop.
        reduction_ops: ops of a step that its grid reductions need, in order.
        remaining_ops: the other ops of a step that its writes need, and the writes.
        partial_ops: ops behind the loop that store the partial results, and the arrival that follows.
        invariant_ops: ops up to the arrival that do not depend on the loop.
    """

    loop: ir.Operation
    reduction_ops: Sequence[ir.Operation]
    remaining_ops: Sequence[ir.Operation]
    partial_ops: Sequence[ir.Operation]
    invariant_ops: Sequence[ir.Operation]


def _peelable(kernel: ir.Operation, layout: BlockedLayout) -> _PeeledLoop | str:
    """The kernel's persistent loop, or why it cannot be peeled."""
    (forall,) = (op for op in body(kernel) if op.name == "scf.forall")
    ops = [op.operation for op in forall.regions[0].blocks[0].operations]
    loop = next((op for op in ops if op.name == "scf.for" and list(op.results)), None)
    if loop is None:
        return "no loop carries partial results"
    *following, _ = ops[ops.index(loop) + 1 :]
    behind = _until_arrival(following)
    partial_ops = _dependent(behind, loop)
    left = {result for op in (loop, *partial_ops) for result in op.results}
    if any(_uses(op, left) for op in following if op not in partial_ops):
        return "results of the loop are used after the block's arrival"
    used = {operand for op in partial_ops for inner in nested(op) for operand in inner.operands}
    *steps, terminator = (op.operation for op in loop.regions[0].blocks[0].operations)
    yielded = [value for value, result in zip(terminator.operands, loop.results, strict=True) if result in used]
    if effect := next((op.name for op in steps if _acts(op) and op.name != WRITE), None):
        return f"{effect} in a step has side effects"
    reduction_ops = backward_slice(yielded, steps)
    writes = [op for op in steps if op.name == WRITE]
    needed = backward_slice([operand for op in writes for operand in op.operands], steps) | set(writes)
    remaining_ops = [op for op in steps if op in needed and op not in reduction_ops]
    if any(_exchanges_data(op, layout) for op in reduction_ops):
        return "the grid reductions depend on row reductions"
    if not any(_exchanges_data(op, layout) for op in remaining_ops):
        return "a step exchanges no data after its grid reductions"
    return _PeeledLoop(
        loop,
        [op for op in steps if op in reduction_ops],
        remaining_ops,
        partial_ops,
        [op for op in behind if op not in partial_ops],
    )


def _exchanges_data(op: ir.Operation, layout: BlockedLayout) -> bool:
    """Whether an op exchanges data between threads: a reduction over elements of several threads."""
    return op.name in REDUCTIONS and not layout.is_alone(reduced_dims(op))


def _until_arrival(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops up to the block's arrival, which is included where its result is unused."""
    for number, op in enumerate(ops):
        if op.name == ARRIVE:
            return list(ops[: number + (not list(op.results[0].uses))])
    return list(ops)


def _dependent(ops: Sequence[ir.Operation], loop: ir.Operation) -> list[ir.Operation]:
    """The ops that depend on the loop's results, and those with side effects."""
    values = set(loop.results)
    found = []
    for op in ops:
        if _acts(op) or _uses(op, values):
            values.update(op.results)
            found.append(op)
    return found


def _uses(op: ir.Operation, values: Collection[ir.Value]) -> bool:
    """Whether an op, or one inside of it, has an operand among some values."""
    return any(operand in values for inner in nested(op) for operand in inner.operands)


def _acts(op: ir.Operation) -> bool:
    """Whether an op has side effects other than a load; stores of these dialects have no results."""
    if op.name == "scf.if":
        return any(_acts(inner) for inner in nested(op) if inner != op)
    makes = op.name.split(".")[0] in ("arith", "affine", "math", "vector", "memref") and op.name not in ATOMICS
    return not (makes and list(op.results)) and op.name not in (*LOADS, "scf.yield", *REDUCTIONS)


def _peel(peeled: _PeeledLoop) -> None:
    lower, upper, step, *initial = peeled.loop.operands
    outer: dict[ir.Value, ir.Value] = {}
    for op in peeled.invariant_ops:
        clone(op, outer)
    stop = arith.SubIOp(upper, step).result
    loop = scf.ForOp(lower, stop, step, [*initial, lower])
    old = peeled.loop.regions[0].blocks[0]
    *steps, terminator = (op.operation for op in old.operations)
    with ir.InsertionPoint(loop.body):
        mapping = dict(zip(old.arguments, [loop.induction_variable, *list(loop.inner_iter_args)[:-1]], strict=True))
        for op in steps:
            clone(op, mapping)
        following = arith.AddIOp(loop.induction_variable, step).result
        scf.YieldOp([*(mapping.get(v, v) for v in terminator.operands), following])
    drop_masks([op.operation for op in loop.body.operations], loop.induction_variable, upper)
    *carried, last = loop.results
    has_tile = arith.CmpIOp(arith.CmpIPredicate.ult, lower, upper).result
    branch = scf.IfOp(has_tile, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        _last_step(peeled, outer | dict(zip(old.arguments, [last, *carried], strict=True)), terminator.operands)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        mapping = outer | dict(zip(peeled.loop.results, initial, strict=True))
        for op in peeled.partial_ops:
            clone(op, mapping)
        scf.YieldOp([])
    for op in peeled.invariant_ops:
        for result in op.results:
            result.replace_all_uses_with(outer[result])
    for op in [*reversed(peeled.partial_ops), *reversed(peeled.invariant_ops), peeled.loop]:
        erase(op)


def _last_step(peeled: _PeeledLoop, mapping: dict[ir.Value, ir.Value], yielded: Sequence[ir.Value]) -> None:
    """Emits the peeled step: its grid reductions, the stores of the partials, the arrival, and the rest of the step."""
    if any(op.name == WAIT_GROUP for op in nested(peeled.loop)):
        nvvm.CpAsyncWaitGroupOp(0)
    for op in peeled.reduction_ops:
        clone(op, mapping)
    mapping.update((result, mapping.get(v, v)) for result, v in zip(peeled.loop.results, yielded, strict=True))
    # The arrival waits until the partials are in the L2, and all blocks wait for it; the rest of the step need not.
    for op in (*peeled.partial_ops, *peeled.remaining_ops):
        for inner in _then_ops(op) if _holds_with_tiles(op, peeled.loop) else [op]:
            clone(inner, mapping)


def _holds_with_tiles(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether an op is an `scf.if` whose condition holds where the loop has a step.

    The condition compares the loop's start with its end, or with a maximum of its end and another number.
    """
    condition = defining_op(op.operands[0]) if op.name == "scf.if" and not list(op.results) else None
    if condition is None or condition.name != "arith.cmpi" or list(op.regions[1].blocks):
        return False
    if ir.IntegerAttr(condition.attributes["predicate"]).value != arith.CmpIPredicate.ult:
        return False
    lower, upper, *_ = loop.operands
    below, bound = condition.operands
    maximum = defining_op(bound)
    bounds = [bound, *(maximum.operands if maximum is not None and maximum.name == "arith.maxui" else [])]
    return bool(below == lower) and upper in bounds


def _then_ops(branch: ir.Operation) -> list[ir.Operation]:
    """The ops of the `then` region of an `scf.if`."""
    *ops, _ = branch.regions[0].blocks[0].operations
    return [op.operation for op in ops]

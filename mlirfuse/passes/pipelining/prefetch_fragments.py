"""`fuse-prefetch-fragments`: loads fragments into registers before the products that use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import backward_slice, clone, defining_op, erase, nested, ops_named

LOAD, PRODUCT = "nvgpu.ldmatrix", "fuse.mma"
WAIT, BARRIER, COMMIT = "nvvm.cp.async.wait.group", "gpu.barrier", "nvvm.cp.async.commit.group"


@dataclass(frozen=True)
class FusePrefetchFragments(Pass):
    """Loads fragments of operands from shared memory one group of products ahead, also from one step to the next.

    Requires the gpu stage. Takes each `scf.for` whose steps wait for copies once, at one barrier, then load by
    `ldmatrix`, and multiply; a group is the products between loads. A step then ends by waiting for the next one's
    copies, and loads its first fragments before the last products of its own, so that the tensor cores have work during
    the barrier. The last step loads its own first fragments again, unused. Copies start behind the first products, so
    that the first loads do not queue behind them. Loops that read fragments in another way, have more barriers, or copy
    through registers stay as they are.

    ```mlir
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      nvvm.cp.async.wait.group 1
      gpu.barrier
      scf.if %more { ... copies of a later step ... }
      nvvm.cp.async.commit.group
      %a = nvgpu.ldmatrix %slot[%row, %c0] ...
      %half = "fuse.mma"(%a, ...)
      %b = nvgpu.ldmatrix %slot[%row, %c16] ...
      %next = "fuse.mma"(%b, ...)
    ```
    becomes
    ```mlir
    nvvm.cp.async.wait.group 1
    gpu.barrier
    %first = nvgpu.ldmatrix ...
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero, %a = %first) {
      %b = nvgpu.ldmatrix %slot[%row, %c16] ...
      %half = "fuse.mma"(%a, ...)
      scf.if %more { ... copies of a later step ... }
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 1
      gpu.barrier
      %ahead = nvgpu.ldmatrix %next_slot[%row, %c0] ...
      %next = "fuse.mma"(%b, ...)
    ```
    """

    name: ClassVar[str] = "fuse-prefetch-fragments"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        parents = dict.fromkeys(product.parent.operation for product in ops_named(module, PRODUCT))
        for loop in [op for op in parents if op.name == "scf.for"]:
            step = _step(loop)
            if isinstance(step, str):
                remarks.declined(self, step, loop)
                continue
            remarks.applied(self, f"{len(step.groups)} groups of products in a step", loop)
            with loop.location:
                _prefetch(step)


@dataclass(frozen=True)
class _Group:
    """Loads, in order, and the first product behind them."""

    loads: Sequence[ir.Operation]
    product: ir.Operation


@dataclass(frozen=True)
class _Step:
    """A step along k: `wait` and `barrier`, then `copies` that start, then groups of loads and products."""

    loop: ir.Operation
    wait: ir.Operation
    barrier: ir.Operation
    copies: Sequence[ir.Operation]
    groups: Sequence[_Group]


def _step(loop: ir.Operation) -> _Step | str:
    """The parts of a loop's step, or why the pass does not apply."""
    *ops, terminator = [op.operation for op in loop.regions[0].blocks[0].operations]
    if any(maker.name == LOAD for value in terminator.operands if (maker := defining_op(value)) is not None):
        return "its first fragments are prefetched already"
    waits = [op for op in ops if op.name == WAIT]
    barriers = [op for op in nested(loop) if op.name == BARRIER]
    if len(waits) != 1 or len(barriers) != 1 or barriers[0] not in ops:
        return f"a step waits {len(waits)} times for copies, at {len(barriers)} barriers, not once at one"
    wait, barrier = waits[0], barriers[0]
    reads = [op for op in ops if op.name.endswith("load") and is_workgroup(op.operands[0].type)]
    if reads:
        return f"{reads[0].name} reads fragments element by element"
    groups = list(_groups(ops))
    if not groups or not ops.index(wait) < ops.index(barrier) < ops.index(groups[0].loads[0]):
        return "products do not wait for copies before they load their operands"
    before = ops[ops.index(barrier) : ops.index(groups[0].loads[0])]
    copies = [op for op in before if op.name in ("scf.if", COMMIT)]
    if any(op.name.endswith("load") for copy in copies for op in nested(copy)):
        return "copies go through registers, which prefetched fragments would need"
    return _Step(loop, wait, barrier, copies, groups)


def _groups(ops: Sequence[ir.Operation]) -> Iterator[_Group]:
    loads: list[ir.Operation] = []
    for op in ops:
        if op.name == LOAD:
            loads.append(op)
        elif op.name == PRODUCT and loads:
            yield _Group(loads, op)
            loads = []


def _prefetch(step: _Step) -> None:
    """Replaces the loop by one that carries the first group's fragments."""
    old = step.loop.regions[0].blocks[0]
    first, last = step.groups[0], step.groups[-1]
    lower, upper, size, *initial = step.loop.operands
    variable = old.arguments[0]
    if len(step.groups) > 1:
        for op in step.copies:
            op.move_before(step.groups[1].product)
    for group, following in zip(step.groups, step.groups[1:], strict=False):
        for op in _makers(following.loads, old):
            if not op.is_before_in_block(group.product):
                op.move_before(group.product)
    with ir.InsertionPoint(last.product):
        k = arith.AddIOp(variable, size).result
        more = arith.CmpIOp(arith.CmpIPredicate.ult, k, upper).result
        ahead = _ahead(step, arith.SelectOp(more, k, variable).result)
    with ir.InsertionPoint(step.loop):
        start = _ahead(step, lower)
        new = scf.ForOp(lower, upper, size, [*initial, *start])
    carried = list(new.inner_iter_args)
    terminator = old.operations[len(old.operations) - 1].operation
    with ir.InsertionPoint(new.body):
        end = scf.YieldOp([*terminator.operands, *ahead])
    for op in [op.operation for op in old.operations][:-1]:
        op.move_before(end.operation)
    for argument, value in zip(old.arguments, [new.induction_variable, *carried[: len(initial)]], strict=True):
        argument.replace_all_uses_with(value)
    for load, value in zip(first.loads, carried[len(initial) :], strict=True):
        load.results[0].replace_all_uses_with(value)
    for op in (*first.loads, step.barrier, step.wait):
        erase(op)
    for before, after in zip(step.loop.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    erase(step.loop)


def _ahead(step: _Step, k: ir.Value) -> list[ir.Value]:
    """Waits for the step at `k`, and loads its first fragments."""
    block = step.loop.regions[0].blocks[0]
    mapping = {block.arguments[0]: k}
    for op in (step.wait, step.barrier, *_makers(step.groups[0].loads, block)):
        clone(op, mapping)
    return [mapping[load.results[0]] for load in step.groups[0].loads]


def _makers(ops: Sequence[ir.Operation], block: ir.Block) -> list[ir.Operation]:
    """`ops` and the ops of the block that they depend on, in order."""
    inside = [op.operation for op in block.operations]
    found = backward_slice([operand for op in ops for operand in op.operands], inside) | set(ops)
    return [op for op in inside if op in found]

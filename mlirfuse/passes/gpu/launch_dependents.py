"""`fuse-launch-dependents`: kernels whose blocks end together trigger the dependent launch before their last stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, nvvm, scf

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.memory.global_memory import reads_global_memory, writes_global_memory
from mlirfuse.dialect.attributes import DEPENDENT_LAUNCH
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.distribution.grid import constant_grid
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import nested, ops_named

WAITS = ("fuse.flagged_load", "fuse.semaphore_wait")
"""Ops that wait for other blocks."""

TRIGGER = "nvvm.griddepcontrol"
STORES = frozenset({"memref.store", "vector.store"})
LOOPS = frozenset({"scf.for", "scf.forall", "scf.parallel", "scf.while"})

LATEST_BYTES, LATEST_BYTES_ALONE, SUBTILE_BYTES = 192, 32, 16
"""Most bytes that a thread may still store, or empty in flagged buffers, after the trigger. With more, blocks of the
next kernel start while this kernel still runs, away from the blocks that read the same data. The limit is lower for
blocks that do not wait for one another. An asynchronous store of a subtile, by one thread, counts as one vector.
Measured on an H200."""


@dataclass(frozen=True)
class FuseLaunchDependents(Pass):
    """Emits `griddepcontrol.launch_dependents` where each block has only its results left to store.

    Requires the gpu stage, and kernels that wait for their predecessor (`fuse-dependent-launch`): their successors wait
    too, whenever they start. A block ends only when its last stores have arrived in the L2, after which the launch of
    the next kernel takes time, most of all a cooperative one. With the trigger in front of these stores, the stores and
    the launch overlap.

    This applies to kernels whose blocks end together; otherwise blocks of the next kernel would start among running
    ones, out of order, and lose the locality of neighbouring blocks (docs/architecture.md, "Synchronisation").
    Blocks end together where they wait for one another, once each has read the last partial results of
    others. Blocks that read no partials trigger the dependent launch implicitly, on exit, as do threads on other
    branches. (Blocks of a serial reduction do not end together, but the last one decides.) Blocks also end together
    where the grid has no more blocks than the device has SMs. Where the size of the grid is not known, only the first
    blocks, as many as the device has SMs, trigger.

    ```mlir
    scf.if %first {
      "fuse.semaphore_wait"(%semaphores, %c0, %blocks) : (memref<1xi32>, index, i32) -> ()
    }
    gpu.barrier
    %partial = memref.load %partials[%other, %t] : memref<?x128xf32>
    %sum = arith.addf %own, %partial : f32
    memref.store %sum, %y[%t] : memref<128xf32>
    ```
    becomes
    ```mlir
    ...
    %partial = memref.load %partials[%other, %t] : memref<?x128xf32>
    nvvm.griddepcontrol launch_dependents
    %sum = arith.addf %own, %partial : f32
    memref.store %sum, %y[%t] : memref<128xf32>
    ```
    and, where nothing is waited for,
    ```mlir
    %x = memref.load %xs[%i] : memref<?xf32>
    %y = math.tanh %x : f32
    %known = "fuse.optimization_barrier"(%block, %y) : (i32, f32) -> i32
    %first = arith.cmpi ult, %known, %c132 : i32
    scf.if %first {
      nvvm.griddepcontrol launch_dependents
    }
    memref.store %y, %ys[%i] : memref<?xf32>
    ```
    """

    name: ClassVar[str] = "fuse-launch-dependents"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        most = target_of_module(module).sms
        for kernel in gpu_kernels(module):
            if _launches(kernel):
                continue
            place = _place(kernel, most)
            if isinstance(place, str):
                remarks.declined(self, place, kernel)
                continue
            _insert(place, most)
            where = f"{'after' if place.behind else 'before'} {place.op.name}"
            who = (
                f"the first {most} blocks of {symbol(kernel)} trigger" if place.counts else f"{symbol(kernel)} triggers"
            )
            when = f" in the last iteration of {place.loops[-1].name}" if place.loops else ""
            remarks.applied(self, f"{who} the dependent launch {where}{when}", place.op)


@dataclass(frozen=True)
class Place:
    """A place for the trigger.

    Attributes:
        op: the op next to the trigger.
        behind: whether the trigger is behind the op, not in front of it.
        counts: whether only the first blocks trigger.
        value: the stored value, on which the trigger must depend: LLVM and ptxas could otherwise move its computation
            behind the trigger.
        loops: the `scf.for`s around the trigger, which is executed in their last iterations only.
    """

    op: ir.Operation
    behind: bool = False
    counts: bool = False
    value: ir.Value | None = None
    loops: tuple[ir.Operation, ...] = ()


def _insert(place: Place, most: int) -> None:
    at = ir.InsertionPoint.after(place.op) if place.behind else ir.InsertionPoint(place.op)
    with at, place.op.location:
        conditions = [_is_last(loop) for loop in place.loops]
        if place.counts or place.value is not None:
            # In a larger grid the other blocks trigger implicitly, on exit. The size of the grid would serve as well,
            # but must be loaded from memory.
            i32 = ir.IntegerType.get_signless(32)
            number = arith.index_cast(i32, gpu.block_id(gpu.Dimension.x))
            number = number if place.value is None else optimization_barrier(number, place.value)
            conditions.append(arith.cmpi(arith.CmpIPredicate.ult, number, arith.constant(i32, most)))
        if not conditions:
            nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
            return
        branch = scf.IfOp(reduce(arith.andi, conditions))
        with ir.InsertionPoint(branch.then_block):
            nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
            scf.YieldOp([])


def _is_last(loop: ir.Operation) -> ir.Value:
    """Whether the iteration of an `scf.for` that runs is its last."""
    _, end, step, *_ = loop.operands
    return arith.cmpi(arith.CmpIPredicate.uge, arith.addi(loop.regions[0].blocks[0].arguments[0], step), end)


def _launches(kernel: ir.Operation) -> bool:
    """Whether a kernel has a trigger already."""
    return any("launch_dependents" in str(op.attributes["kind"]) for op in ops_named(kernel, TRIGGER))


def _place(kernel: ir.Operation, most: int) -> Place | str:
    """The place for a kernel's trigger, or why there is none."""
    if DEPENDENT_LAUNCH not in kernel.attributes:
        return "the kernel does not wait for its predecessor"
    body = kernel.regions[0].blocks[0]
    if ops_named(kernel, *WAITS):
        return _behind_the_last_read(body)
    blocks = constant_grid(kernel)
    if blocks is not None and blocks > most:
        return f"its {blocks} blocks do not wait for each other, and do not all run at once"
    return _before_the_last_store(body, counts=blocks is None)


def _behind_the_last_read(block: ir.Block) -> Place | str:
    """The place behind the last op that reads data of other blocks, if only stores follow; else why there is none.

    A block may combine several slices of the results in sequence; the trigger is then in the last one.
    """
    has_waited, left, loops = False, 0, []
    while True:
        before, last, behind = _around_the_last_read(block)
        assert last is not None  # a wait reads, and each entered region contains one
        if any(map(_stores_in_a_loop, behind)):
            return "results are stored in a loop"
        left += sum(map(_stored_bytes, behind))
        has_waited = has_waited or any(map(_waits, reversed(before)))
        reading, writing = _regions(last, reads_global_memory), _regions(last, writes_global_memory)
        if last.name in LOOPS and writing and _waits(last):
            return "its blocks wait for each other in a loop"
        if len(writing) > 1:
            return f"two regions of {last.name} store results"
        if writing and writing[0] not in reading:
            return "the blocks that store results have not waited for others"
        # Behind a loop over partial results of others. Threads that skip a branch with reads are ahead of the others.
        inside = writing or ([] if last.name in LOOPS else reading)
        if len(inside) != 1:
            break
        if last.name in LOOPS and last.name != "scf.for":
            return f"results are stored in an {last.name}"
        loops += [last] if last.name in LOOPS else []
        (block,) = inside
    if not has_waited and not _waits(last):
        return "the blocks that store results have not waited for others"
    left += sum(_emptied_bytes(op) for op in nested(last))
    return _too_much(left, LATEST_BYTES) or Place(last, behind=True, loops=tuple(loops))


def _before_the_last_store(block: ir.Block, *, counts: bool) -> Place | str:
    """In front of the last store of results, if there is no read behind the first store."""
    while True:
        _, last, behind = _around_the_last_read(block)
        stores = [op for op in behind if writes_global_memory(op)]
        if any(map(_stores_in_a_loop, stores)):
            return "results are stored in a loop"
        if stores:
            left = sum(map(_stored_bytes, stores))
            return _too_much(left, LATEST_BYTES_ALONE) or _in_front_of(_last_inside(stores[-1]), counts=counts)
        if last is None:
            return "it stores nothing"
        if _stores_in_a_loop(last):
            return "results are stored in a loop"
        writing = _regions(last, writes_global_memory)
        if len(writing) != 1:
            return f"{len(writing)} regions of {last.name} store results"
        (block,) = writing


def _in_front_of(store: ir.Operation, *, counts: bool) -> Place:
    """In front of a store, when its value is known."""
    return Place(store, counts=counts, value=store.operands[0] if store.name in STORES else None)


def _last_inside(op: ir.Operation) -> ir.Operation:
    """The last store in an op, where few registers are in use; of an op with several regions, in the first region."""
    while regions := _regions(op, writes_global_memory):
        op = next(inner.operation for inner in reversed(list(regions[0].operations)) if writes_global_memory(inner))
    return op


def _stores_in_a_loop(op: ir.Operation) -> bool:
    return any(inner.name in LOOPS and writes_global_memory(inner) for inner in nested(op))


def _waits(op: ir.Operation) -> bool:
    """Whether an op, or one inside of it, waits for other blocks."""
    return any(inner.name in WAITS for inner in nested(op))


def _around_the_last_read(block: ir.Block) -> tuple[list[ir.Operation], ir.Operation | None, list[ir.Operation]]:
    """The ops of a block before the last op that contains a read; that op, or None; and the ops behind it."""
    ops = [op.operation for op in block.operations]
    at = next((number for number in reversed(range(len(ops))) if reads_global_memory(ops[number])), None)
    return ([], None, ops) if at is None else (ops[:at], ops[at], ops[at + 1 :])


def _regions(op: ir.Operation, does: Callable[[ir.Operation], bool]) -> list[ir.Block]:
    """The non-empty blocks inside of an op."""
    return [block for region in op.regions for block in region.blocks if any(map(does, block.operations))]


def _too_much(left: int, most: int) -> str | None:
    if left <= most:
        return None
    return f"a thread may still store {left} bytes when nothing is left to read, more than {most}"


def _stored_bytes(op: ir.Operation) -> int:
    """Bytes that a thread stores in an op, summed over all branches."""
    stores = [inner for inner in nested(op) if inner.name in STORES]
    subtiles = [inner for inner in nested(op) if inner.name == "fuse.async_store"]
    return SUBTILE_BYTES * len(subtiles) + sum(bytes_of(s.operands[0].type) for s in stores if writes_global_memory(s))


def _emptied_bytes(op: ir.Operation) -> int:
    """Bytes that a thread reads from flagged buffers, which it then empties."""
    return sum(bytes_of(result.type) for result in op.results) if op.name == "fuse.flagged_load" else 0

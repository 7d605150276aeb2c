"""`fuse-launch-dependents`: kernels whose blocks end together let the next one start when these only have to store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, nvvm, scf

from mlirfuse.analysis.kernels import DEPENDENT_LAUNCH, gpu_kernels, symbol
from mlirfuse.analysis.memory.global_memory import reads_global_memory, writes_global_memory
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.distribution.grid import constant_grid
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import nested, ops_named
from mlirfuse.target import DEFAULT, target_of

WAITS = ("fuse.flagged_load", "fuse.semaphore_wait")
"""Ops behind which other blocks have come to the same point."""

TRIGGER = "nvvm.griddepcontrol"
STORES = frozenset({"memref.store", "vector.store"})
LOOPS = frozenset({"scf.for", "scf.forall", "scf.parallel", "scf.while"})

LATEST_BYTES, LATEST_BYTES_ALONE, SUBTILE_BYTES = 192, 32, 16
"""What a thread may still have to store, or to empty of flagged buffers, when the next kernel starts, bytes. Products
with up to 160 take 0.92 to 0.99 of the time so, again and again in a replayed graph. 256x256x131072, which has 264,
takes 1.00 to 1.05: blocks of the next kernel then begin where this one's end, and not beside those that read the same.
Of blocks that do not wait for each other threads may have less: a softmax of 128x8192, with 64, took 2.93 us and not
2.71, as blocks of the next one came to share an SM. One thread copies a subtile, which counts as a vector (H200)."""


@dataclass(frozen=True)
class FuseLaunchDependents(Pass):
    """Lets the next kernel in the stream start when each block has only its results left to store.

    Requires the gpu stage, and kernels that wait for their predecessor (`fuse-dependent-launch`): those behind them in
    the stream do the same, whenever they start. The end of a block does not count before its last stores have arrived
    in the L2, and then a launch takes its time, most of all of grids that are launched whole. The two go on beside each
    other with `griddepcontrol.launch_dependents` in front of these stores: H200, microseconds a call in replayed graphs
    without and with it, LayerNorm backward 1024x2048 10.4 and 10.1, 1024x4096 11.9 and 11.6, 4096x4096 29.2 and 28.9;
    products 128x512x16384 8.5 and 8.2, 256x512x8192 7.2 and 6.8, 256x256x4096 4.2 and 4.0.

    That is for kernels whose blocks end together. Where some of them still have work to do the next kernel's blocks
    would start among them, in no order, and lose what neighbours in the grid read together (docs/architecture.md, "The
    order of kernels in a stream"). They end together where they wait for each other, and have read what others have
    left for them, of the last results that they add up; blocks that have nothing to read of others let the next kernel
    start by ending, and so do threads that go another way. (Blocks that take turns do not end together, but then the
    last one decides.) And where there are no more of them than SMs: softmax of 64x4096 1.86 and 1.67, the
    product 512x512x512 2.53 and 2.30. Where nobody knows how many there are, so many are the first that do this.

    ```mlir
    scf.if %first {
      "fuse.semaphore_wait"(%semaphores, %c0, %blocks) : (memref<1xi32>, index, i32) -> ()
    }
    gpu.barrier
    %part = memref.load %parts[%other, %t] : memref<?x128xf32>
    %total = arith.addf %own, %part : f32
    memref.store %total, %y[%t] : memref<128xf32>
    ```
    becomes
    ```mlir
    ...
    %part = memref.load %parts[%other, %t] : memref<?x128xf32>
    nvvm.griddepcontrol launch_dependents
    %total = arith.addf %own, %part : f32
    memref.store %total, %y[%t] : memref<128xf32>
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

    Args:
        target: the architecture.
        sms: SMs of the device; 0 for the number that the architecture is best known by.
    """

    name: ClassVar[str] = "fuse-launch-dependents"

    target: str = DEFAULT
    sms: int = 0

    def __post_init__(self) -> None:
        target_of(self.target)

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        most = target_of(self.target, self.sms).sms
        for kernel in gpu_kernels(module):
            if _launches(kernel):
                continue
            place = _place(kernel, most)
            if isinstance(place, str):
                remarks.declined(self, place, kernel)
                continue
            _insert(place, most)
            where = f"{'behind' if place.behind else 'in front of'} {place.op.name}"
            who = f"the first {most} blocks of {symbol(kernel)} let" if place.counts else f"{symbol(kernel)} lets"
            when = f" in the last iteration of {place.loops[-1].name}" if place.loops else ""
            remarks.applied(self, f"{who} the next kernel start {where}{when}", place.op)


@dataclass(frozen=True)
class Place:
    """Where the next kernel may start.

    Attributes:
        op: the op it is at.
        behind: whether it is behind the op, and not in front of it.
        counts: whether only the first blocks do it.
        value: what the op stores, which is to be known: what computes it need not be in front of the op any more when
            LLVM and ptxas have moved it.
        loops: the `scf.for`s around it, of which only the last iteration does it.
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
            # Of more blocks those behind the first let the next kernel start by ending, and it waits for them. The size
            # of the grid would say the same, but lies in memory that nothing else has read.
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
    """Where a kernel may let the next one start; or why nowhere."""
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
    """Behind the last op that reads what other blocks have written, with only stores behind it.

    A block may have several parts of the results to add up, one behind the other: then it is in the last of them.
    """
    has_waited, left, loops = False, 0, []
    while True:
        before, last, behind = _around_the_last_read(block)
        assert last is not None  # a wait is one, and what is entered has one
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
        # A loop over what others have left ends first. Of an op that some threads read in, the others are ahead.
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
    """In front of the last store of results, with nothing to read behind the first."""
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
    """The last store in an op, where few registers are in use; if it has several regions, of the first of these."""
    while regions := _regions(op, writes_global_memory):
        op = next(inner.operation for inner in reversed(list(regions[0].operations)) if writes_global_memory(inner))
    return op


def _stores_in_a_loop(op: ir.Operation) -> bool:
    return any(inner.name in LOOPS and writes_global_memory(inner) for inner in nested(op))


def _waits(op: ir.Operation) -> bool:
    """Whether an op, or one inside of it, waits for other blocks."""
    return any(inner.name in WAITS for inner in nested(op))


def _around_the_last_read(block: ir.Block) -> tuple[list[ir.Operation], ir.Operation | None, list[ir.Operation]]:
    """The ops of a block in front of the last in which something reads; that op, or None; and those behind it."""
    ops = [op.operation for op in block.operations]
    at = next((number for number in reversed(range(len(ops))) if reads_global_memory(ops[number])), None)
    return ([], None, ops) if at is None else (ops[:at], ops[at], ops[at + 1 :])


def _regions(op: ir.Operation, does: Callable[[ir.Operation], bool]) -> list[ir.Block]:
    """The blocks inside of an op in which some op does something."""
    return [block for region in op.regions for block in region.blocks if any(map(does, block.operations))]


def _too_much(left: int, most: int) -> str | None:
    if left <= most:
        return None
    return f"a thread may still store {left} bytes when nothing is left to read, more than {most}"


def _stored_bytes(op: ir.Operation) -> int:
    """What a thread stores in an op, bytes; on all ways through it."""
    stores = [inner for inner in nested(op) if inner.name in STORES]
    subtiles = [inner for inner in nested(op) if inner.name == "fuse.async_store"]
    return SUBTILE_BYTES * len(subtiles) + sum(bytes_of(s.operands[0].type) for s in stores if writes_global_memory(s))


def _emptied_bytes(op: ir.Operation) -> int:
    """What a thread takes out of flagged buffers, which it leaves empty, bytes."""
    return sum(bytes_of(result.type) for result in op.results) if op.name == "fuse.flagged_load" else 0

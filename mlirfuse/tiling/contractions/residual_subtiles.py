"""Loads a tile that an epilogue reads (a residual) by asynchronous copies, into the stages of the epilogue's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from mlirfuse.dialect.async_load import async_load
from mlirfuse.dialect.async_store_wait import async_store_wait
from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_expect import mbarrier_expect
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait
from mlirfuse.dialect.shared_memory import stage_bytes, workgroup_memref
from mlirfuse.dialect.staged_tile import staged_tile
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.schedule.model.machine import SWIZZLE_ALIGNMENT
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.contractions.tile_source import TileSource, producer_loop
from mlirfuse.tiling.slot_ring import read_indices
from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class ResidualSubtiles:
    """Plan for loading an epilogue's input tile through the stages of a result.

    Attributes:
        ring: the stages of the result's subtiles, for each consumer group, or of the argument's own.
        offsets: first column of each subtile in the tile.
        writes: the `fuse.stage_tile` ops of the result, one for each subtile; none of stages of its own.
        source: where the tile is; a stage's rows and columns run along its dimensions.
    """

    ring: ir.Value
    offsets: tuple[int, ...]
    writes: tuple[ir.Operation, ...]
    source: TileSource


def stage_residual(role: ir.Operation, read: ir.Operation, plan: ResidualSubtiles) -> None:
    """Replaces a consumer's read in `fuse.warp_roles` by asynchronous copies of the producer and waits of consumers."""
    subtiles, consumer_groups = len(plan.offsets), consumer_groups_of(role)
    with read.location:
        if read.parent == role:
            (landed,) = _barriers(role, [(subtiles, 1)])
            with ir.InsertionPoint(read):
                _receive(read, plan, landed, index(0), _parity(0))
            with ir.InsertionPoint.at_block_terminator(role.regions[1].blocks[0]):
                _copy(read, plan, landed, index(0), read_indices(read))
            erase(read)
            return
        warpgroups = ir.DenseI64ArrayAttr(role.attributes["warpgroups"])[0]
        landed, free = _barriers(role, [(consumer_groups * subtiles, 1), (consumer_groups, warpgroups)])
        tile_loop, (phase,) = _carry_values(read.parent, [_parity], lambda carried: [_other(carried[0])])
        with ir.InsertionPoint(read):
            consumer_group = role.regions[0].blocks[0].arguments[0] if consumer_groups > 1 else index(0)
            _receive(read, plan, landed, _first_stage(consumer_group, subtiles), phase)
        _release_stages(tile_loop, plan, free, consumer_group, warpgroups)
        producer, (consumer_group, phase) = _carry_values(
            producer_loop(role),
            [lambda: index(0), _parity],
            lambda carried: _next_tile(carried[0], carried[1], consumer_groups),
        )
        with ir.InsertionPoint.at_block_terminator(producer.regions[0].blocks[0]):
            starts = plan.source.starts(read, tile_loop, producer)
            # A wait with parity 1 on a fresh barrier returns at once: the first tile of each group needs no release.
            mbarrier_wait(free, consumer_group, _other(phase))
            _copy(read, plan, landed, _first_stage(consumer_group, subtiles), starts)
        erase(read)


def argument_ring(role: ir.Operation, element: ir.Type, rows: int, columns: int, subtiles: int) -> ir.Value:
    """Allocates stages for the subtiles of a tile that the epilogue reads, for each consumer group."""
    i64 = ir.IntegerType.get_signless(64)
    type_ = workgroup_memref([consumer_groups_of(role) * subtiles, rows, columns], element)
    with ir.InsertionPoint(_behind_barriers(role)), role.location:
        return memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, SWIZZLE_ALIGNMENT)).result


def _behind_barriers(role: ir.Operation) -> ir.Operation:
    """The op behind the last initialisation of mbarriers in front of the roles."""
    block = [op.operation for op in role.block.operations]
    return block[1 + max(number for number, op in enumerate(block) if op.name == "fuse.mbarrier_init")]


def _barriers(role: ir.Operation, counts: Sequence[tuple[int, int]]) -> list[ir.Value]:
    """Allocates arrays of mbarriers after the ring's, one for each (number of barriers, arrivals) pair in `counts`."""
    i64 = ir.IntegerType.get_signless(64)
    barriers = []
    with ir.InsertionPoint(_behind_barriers(role)):
        for count, arrivals in counts:
            type_ = workgroup_memref([count], i64)
            barriers.append(memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, 16)).result)
            mbarrier_init(barriers[-1], arrivals)
    return barriers


def _receive(read: ir.Operation, plan: ResidualSubtiles, landed: ir.Value, first: ir.Value, parity: ir.Value) -> None:
    """Emits the consumers' waits for all subtiles and the read of the subtiles as one tile."""
    for number in range(len(plan.offsets)):
        mbarrier_wait(landed, _advanced(first, number), parity)
    (tile,) = staged_tile(plan.ring, first, [read.results[0].type], plan.offsets, transposed=plan.source.transposed)
    read.results[0].replace_all_uses_with(tile)


def _copy(
    read: ir.Operation, plan: ResidualSubtiles, landed: ir.Value, first: ir.Value, starts: Sequence[ir.Value]
) -> None:
    """Emits the producer's copies of all subtiles."""
    for number, offset in enumerate(plan.offsets):
        stage, start = _advanced(first, number), list(starts)
        axis = plan.source.dims[0 if plan.source.transposed else 1]
        start[axis] = _advanced(start[axis], offset)
        mbarrier_expect(landed, stage, stage_bytes(ir.MemRefType(plan.ring.type)))
        async_load(read.operands[0], plan.ring, stage, landed, start, plan.source.dims)


def _release_stages(
    tile_loop: ir.Operation, plan: ResidualSubtiles, free: ir.Value, consumer_group: ir.Value, warpgroups: int
) -> None:
    """Releases the stages to the producer after the result's stores have read them, or at the tile's end.

    The waits for earlier stores in front of the stage writes become redundant and are erased.
    """
    if not plan.writes:
        with ir.InsertionPoint.at_block_terminator(tile_loop.regions[0].blocks[0]):
            mbarrier_arrive(free, consumer_group, warpgroups)
        return
    ops = [op.operation for op in tile_loop.regions[0].blocks[0].operations]
    stores = [number for number, op in enumerate(ops) if op.name == "fuse.async_store" and op.operands[1] == plan.ring]
    with ir.InsertionPoint(ops[stores[-1] + 1]):
        async_store_wait(0)
        mbarrier_arrive(free, consumer_group, warpgroups)
    before = [ops[number] for write in plan.writes for number in range(ops.index(write) - 2, ops.index(write))]
    for op in before:
        if op.name in ("fuse.async_store_wait", "gpu.barrier"):
            erase(op)


def _carry_values(
    loop: ir.Operation, initial: Sequence[Callable[[], ir.Value]], following: Callable[[list[ir.Value]], list[ir.Value]]
) -> tuple[ir.Operation, list[ir.Value]]:
    """Rebuilds a loop with additional carried values; returns the new loop and these values.

    `initial` emits the start values before the loop, `following` the next values at the end of its body.
    """
    old = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        new = scf.ForOp(*list(loop.operands)[:3], [*list(loop.operands)[3:], *(make() for make in initial)])
        for before, after in zip(old.arguments, new.body.arguments, strict=False):
            before.replace_all_uses_with(after)
        for op in list(old.operations)[:-1]:
            new.body.append(op)
        carried = list(new.inner_iter_args)[-len(initial) :]
        with ir.InsertionPoint(new.body):
            scf.YieldOp([*old.operations[0].operands, *following(carried)])
    for before, after in zip(loop.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    erase(loop)
    return new.operation, carried


def _next_tile(consumer_group: ir.Value, parity: ir.Value, consumer_groups: int) -> list[ir.Value]:
    """The consumer group of the persistent loop's next tile, and the parity (i32) of that group's phase."""
    following = arith.addi(consumer_group, index(1))
    wraps = arith.cmpi(arith.CmpIPredicate.eq, following, index(consumer_groups))
    return [arith.select(wraps, index(0), following), arith.select(wraps, _other(parity), parity)]


def _first_stage(consumer_group: ir.Value, subtiles: int) -> ir.Value:
    return arith.muli(consumer_group, index(subtiles))


def _advanced(start: ir.Value, count: int) -> ir.Value:
    return arith.addi(start, index(count)) if count else start


def _variable(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _parity(value: int = 0) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)


def _other(parity: ir.Value) -> ir.Value:
    return arith.xori(parity, _parity(1))

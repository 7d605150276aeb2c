"""Rules of warp roles, and of the ops of warpgroup multiplication."""

from __future__ import annotations

from itertools import islice

from mlir import ir
from mlir.dialects import arith, gpu, scf

from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.elect_one import elect_one
from mlirfuse.dialect.set_registers import set_registers
from mlirfuse.dialect.stage_tile import LOADS_IN_TURN, is_transposed, stage_tile, staged_shape
from mlirfuse.dialect.staged_tile import first_of, staged_tile
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.dialect.warpgroup_mma import warpgroup_mma
from mlirfuse.dialect.warpgroup_wait import warpgroup_wait
from mlirfuse.distribution.distributor import Distributor, Role, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, widen
from mlirfuse.distribution.threads.scalars import add, constant, divide, equals_zero
from mlirfuse.errors import PassError
from mlirfuse.schedule.contractions.step_times import holds_warpgroup_sums
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.rewriting import clone


@rule("fuse.warp_roles")
def warp_roles(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.warp_roles`.

    The first warps take one branch, which has a branch for each consumer group; one thread of the next warp takes the
    other. The remaining threads of the producer's role have no code.
    """
    consumers, producers = ir.DenseI64ArrayAttr(op.attributes["warpgroups"])
    consumer_registers, producer_registers = ir.DenseI64ArrayAttr(op.attributes["registers"])
    if d.layout.threads != consumers * WARPGROUP:
        raise PassError(
            f"the layout covers {d.layout.threads} threads, the consumers are {consumers} warpgroups",
            where=op,
        )
    d.force_all()
    consumer_groups = consumer_groups_of(op)
    threads = (consumer_groups * consumers + producers) * WARPGROUP
    d.function.operation.attributes["known_block_size"] = ir.DenseI32ArrayAttr.get([threads, 1, 1])
    warp, first_producer = _warp_number(), consumer_groups * consumers * WARPGROUP // WARP
    branch = scf.IfOp(_compare(arith.CmpIPredicate.ult, warp, first_producer), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        set_registers(consumer_registers, "increase")
        _consume(d, op, warp, Role(consumers), range(consumer_groups))
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        set_registers(producer_registers, "decrease")
        first = scf.IfOp(_compare(arith.CmpIPredicate.eq, warp, first_producer))
        with ir.InsertionPoint(first.then_block):
            elected = scf.IfOp(elect_one())
            with ir.InsertionPoint(elected.then_block):
                _distribute(d, op.regions[1])
                scf.YieldOp([])
            scf.YieldOp([])
        scf.YieldOp([])


def _consume(d: Distributor, op: ir.Operation, warp: ir.Value, consumer_group: Role, numbers: range) -> None:
    """Emits a separate copy of the consumers' code for each consumer group number; `consumer_group` is the first
    group's role.
    """
    if len(numbers) > 1:
        behind = Role(consumer_group.warpgroups, consumer_group.first + consumer_group.warpgroups)
        own = scf.IfOp(_compare(arith.CmpIPredicate.ult, warp, behind.first * WARPGROUP // WARP), has_else=True)
        for block, first, some in (
            (own.then_block, consumer_group, numbers[:1]),
            (own.else_block, behind, numbers[1:]),
        ):
            with ir.InsertionPoint(block):
                _consume(d, op, warp, first, some)
                scf.YieldOp([])
        return
    with d.as_role(consumer_group):
        d.scalars.update((number, constant(numbers[0])) for number in op.regions[0].blocks[0].arguments)
        _distribute(d, op.regions[0])


@rule("fuse.warpgroup_mma")
def multiply(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.warpgroup_mma`: passes a thread's accumulator fragments in the order of PTX's registers."""
    a, b, stage, accumulator = op.operands
    tile = _accumulators(d, accumulator)
    keys = _register_order(tile, op)
    majors = [ir.StringAttr(op.attributes[name]).value for name in ("a_major", "b_major")]
    sums = warpgroup_mma(d.scalars[a], d.scalars[b], d.scalars[stage], [tile.at(key) for key in keys], *majors)
    _bind(d, op.results[0], tile, keys, sums)


@rule("fuse.warpgroup_wait")
def wait(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.warpgroup_wait`: passes the fragments of all tiles, in the order of PTX's registers."""
    tiles = [d.fragments(operand) for operand in op.operands]
    keys = [_register_order(tile, op) for tile in tiles]
    parts = [tile.at(key) for tile, own in zip(tiles, keys, strict=True) for key in own]
    values = iter(warpgroup_wait(parts, ir.IntegerAttr(op.attributes["pending"]).value))
    for result, tile, own in zip(op.results, tiles, keys, strict=True):
        _bind(d, result, tile, own, list(islice(values, len(own))))


@rule("fuse.stage_tile")
def stage(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.stage_tile`: passes a thread's fragments of the staged columns."""
    ring, number, value = op.operands
    tile = _accumulators(d, value)
    offset, transposed = ir.IntegerAttr(op.attributes["offset"]).value, is_transposed(op)
    _, width = staged_shape(ir.MemRefType(ring.type), transposed)
    columns = range(offset // 8, (offset + width) // 8)
    keys = [key for key in _register_order(tile, op) if key[-1] in columns]
    fragments, in_turn = [tile.at(key) for key in keys], LOADS_IN_TURN in op.attributes
    stage_tile(d.scalars[ring], d.scalars[number], fragments, 0, transposed=transposed, loads_in_turn=in_turn)


@rule("fuse.staged_tile")
def staged(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.staged_tile`: the first use of a fragment reads its whole stage, before any later write to that
    stage.
    """
    ring, first = op.operands
    type_, transposed = ir.VectorType(op.results[0].type), is_transposed(op)
    _, width = staged_shape(ir.MemRefType(ring.type), transposed)
    tile = Fragments(d.layout, tuple(type_.shape), type_.element_type)
    order = _register_order(tile, op)
    offsets = list(ir.DenseI64ArrayAttr(op.attributes["offsets"]))
    loaded: dict[Key, ir.Value] = {}
    first_column, count = first_of(op), type_.shape[-1]

    def make(key: Key) -> ir.Value:
        if key not in loaded and first_column is not None:
            types = [tile.type] * len(order)
            values = staged_tile(
                d.scalars[ring], d.scalars[first], types, first=first_column, columns=count, transposed=transposed
            )
            loaded.update(zip(order, values, strict=True))
        elif key not in loaded:
            number = next(i for i, offset in enumerate(offsets) if offset <= 8 * key[-1] < offset + width)
            columns = range(offsets[number] // 8, (offsets[number] + width) // 8)
            keys = [key for key in order if key[-1] in columns]
            stage = add(d.scalars[first], constant(number)) if number else d.scalars[first]
            values = staged_tile(d.scalars[ring], stage, [tile.type] * len(keys), transposed=transposed)
            loaded.update(pair for pair in zip(keys, values, strict=True) if pair[0] not in loaded)
        return loaded[key]

    tile.make = make
    d.tiles[op.results[0]] = tile


@rule("fuse.async_store", "fuse.async_store_wait")
def by_one_thread(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.async_store` and `fuse.async_store_wait`: the role's first thread stores and waits."""
    branch = scf.IfOp(equals_zero(d.threads.number))
    with ir.InsertionPoint(branch.then_block):
        clone(op, d.scalars)
        scf.YieldOp([])


@rule("fuse.cluster_barrier")
def cluster_meeting(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.cluster_barrier`, for the threads of all blocks that run the code."""
    d.force_all()
    cluster_barrier(None if d.role is None else d.role.warpgroups)


@rule("gpu.barrier")
def barrier(d: Distributor, op: ir.Operation) -> None:
    """The rule of `gpu.barrier`, for the threads that run the code: within roles, those of a role."""
    d.force_all()
    d.barrier()


def _accumulators(d: Distributor, value: ir.Value) -> Fragments:
    """The fragments of accumulators; a uniform value is expanded."""
    tile = d.tile(value)
    if isinstance(tile, Fragments):
        return tile
    start, type_ = tile.value, ir.VectorType(value.type)
    fragments = Fragments(d.layout, tuple(type_.shape), type_.element_type)
    fragments.make = lambda _: widen(start, fragments.width)
    return fragments


def _register_order(tile: Fragments, op: ir.Operation) -> list[Key]:
    """Keys of the fragments in register order: for each 64 rows and each 8 columns, a warp's upper rows, then its
    lower.
    """
    layout, (m, n) = tile.layout, (tile.layout.rank - 2, tile.layout.rank - 1)
    if not holds_warpgroup_sums(layout):
        raise PassError(f"{layout} is not a layout of wgmma's accumulators", where=op)
    batch = (0,) * m
    return [
        (*batch, 2 * repeat + half, column)
        for repeat in range(tile.repeats(m) // 2)
        for column in range(tile.repeats(n))
        for half in range(2)
    ]


def _bind(d: Distributor, result: ir.Value, tile: Fragments, keys: list[Key], values: list[ir.Value]) -> None:
    bound = tile.like(tile.extents, tile.element_type)
    bound.values = dict(zip(keys, values, strict=True))
    d.tiles[result] = bound


def _distribute(d: Distributor, region: ir.Region) -> None:
    d.distribute_all([inner.operation for inner in region.blocks[0].operations][:-1])


def _warp_number() -> ir.Value:
    """The thread's warp (i32), read through a shuffle so that ptxas knows the value to be uniform in a warp."""
    i32 = ir.IntegerType.get_signless(32)
    warp = arith.index_cast(i32, divide(gpu.ThreadIdOp(gpu.Dimension.x).result, WARP))
    return gpu.ShuffleOp(warp, arith.constant(i32, 0), arith.constant(i32, WARP), gpu.ShuffleMode.IDX).results[0]


def _compare(predicate: arith.CmpIPredicate, warp: ir.Value, number: int) -> ir.Value:
    return arith.cmpi(predicate, warp, arith.constant(warp.type, number))

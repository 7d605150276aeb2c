"""`fuse-stage-results`: stores result tiles through shared memory, by asynchronous stores of epilogue subtiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, memref

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.dialect.async_store import async_store
from mlirfuse.dialect.async_store_wait import async_store_wait
from mlirfuse.dialect.attributes import SECOND_STAGE, WORKSPACE
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.shared_memory import workgroup_memref
from mlirfuse.dialect.stage_tile import stage_tile
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.contractions.stages import FRAGMENT, result_stages, subtile_columns
from mlirfuse.schedule.contractions.step_times import holds_warpgroup_sums
from mlirfuse.schedule.model.machine import MAX_BOX, MAX_RANK, SWIZZLE_ALIGNMENT, SWIZZLE_BYTES, TENSOR_MAP_STRIDE
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.schedule.model.shared_memory import copies_bytes
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import bytes_of, element_bytes, from_mlir
from mlirfuse.support.rewriting import erase, nested
from mlirfuse.target import Target
from mlirfuse.tiling.contractions.tile_source import elementwise_reads

SMALL = 1024
"""Bytes of shared memory that a block's barriers and small exchanges fit in."""


@dataclass(frozen=True)
class FuseStageResults(Pass):
    """Replaces writes of accumulator tiles by epilogue subtiles, staged in shared memory and stored asynchronously.

    Requires tile programs with `fuse.warp_roles`; a write in the consumers' role is replaced where a tensor map can
    describe its target: an argument with unit stride along the tile's columns or rows, other strides of whole 16 bytes,
    elements of 2 or 4 bytes, tiles of at least one 128-byte swizzle atom with at most 256 rows; and where the subtiles
    fit the shared memory that the ring and reductions of the tile leave. A thread of the accumulators' layout has 4 or
    8 contiguous bytes, whereas TMA stores write whole lines. Where subtiles do not divide a tile, the last one overlaps
    the one before, and the overlap is written twice. A column-major tile is transposed
    in shared memory: up to 64 of its columns at a time are the rows of a stage as wide as the tile is high.

    ```mlir
    vector.transfer_write %y, %C[%m, %n] : vector<128x256xbf16>, memref<?x4096xbf16>
    ```
    becomes, for the first of four subtiles,
    ```mlir
    "fuse.stage_tile"(%subtiles, %c0, %y) {offset = 0 : i64} : (memref<2x128x64xbf16, ...>, index, ...) -> ()
    gpu.barrier
    "fuse.async_store"(%C, %subtiles, %c0, %m, %n) {dims = array<i64: 0, 1>} : ...
    ```
    and, before a subtile is written again, a `fuse.async_store_wait` and a barrier.
    """

    name: ClassVar[str] = "fuse-stage-results"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        for kernel in kernels(module):
            roles = [op for op in nested(kernel) if op.name == "fuse.warp_roles"] if is_tile_program(kernel) else []
            for role in roles:
                writes = [op for op in nested(role) if op.name == "vector.transfer_write"]
                tiles = [ir.VectorType(write.operands[0].type).shape for write in writes]
                for number, write in enumerate(writes):
                    plan = _plan(kernel, role, write, target, tiles[number:].count(tiles[number]))
                    if isinstance(plan, str):
                        remarks.declined(self, plan, write)
                        continue
                    _stage(role, write, plan, schedule_of(kernel).order)
                    remarks.applied(self, f"{len(plan.places)} subtiles through {plan.stages} stages", write)
                    erase(write)


@dataclass(frozen=True)
class Plan:
    """The plan for storing a tile.

    Attributes:
        rows: of a stage.
        columns: of a stage.
        places: the tile's column with which each subtile, what a stage holds, begins.
        stages: subtiles in shared memory, of each consumer group.
        dims: the target's dimensions along which a stage's rows and columns run.
        transposed: whether a stage's rows are columns of the tile.
    """

    rows: int
    columns: int
    places: tuple[int, ...]
    stages: int
    dims: tuple[int, int]
    transposed: bool = False


def _plan(kernel: ir.Operation, role: ir.Operation, write: ir.Operation, device: Target, sharing: int) -> Plan | str:
    """The plan for a write, or why it stays as it is; so many writes, it among them, share the memory that is left."""
    tile, target = ir.VectorType(write.operands[0].type), write.operands[1]
    type_ = ir.MemRefType(target.type)
    if write.parent.name == "scf.if" and SECOND_STAGE in write.parent.attributes:
        return "the tile is a slice of rows, which has not the layout of accumulators"
    if not holds_warpgroup_sums(schedule_of(kernel).layout):
        return "the tile has not the layout in which stmatrix stores warpgroups' accumulators"
    arguments = list(kernel.regions[0].blocks[0].arguments)
    if target not in arguments:
        return "the target is not an argument of the kernel"
    if WORKSPACE in argument_attributes(kernel)[arguments.index(target)]:
        return "other blocks read the target, and asynchronous stores are visible when the kernel ends"
    if tile.rank < 2 or prod(tile.shape[:-2]) != 1 or len(write.operands) != 2 + type_.rank:
        return "the tile has more than two dimensions, or a mask"
    results = list(ir.AffineMapAttr(write.attributes["permutation_map"]).value.results)[-2:]
    row, column = (ir.AffineDimExpr(result).position for result in results)
    size = element_bytes(type_)
    strides, _ = type_.get_strides_and_offset()
    transposed = strides[column] != 1 and strides[row] == 1
    inner = row if transposed else column
    whole = [s for d, s in enumerate(strides) if d != inner and type_.shape[d] != 1]
    if (
        type_.rank > MAX_RANK
        or strides[inner] != 1
        or any(not _is_static(s) or s * size % TENSOR_MAP_STRIDE or s == 0 for s in whole)
    ):
        return f"a tensor map cannot describe strides {strides}"
    rows, extent = tile.shape[-2:]
    lines = rows if transposed else extent
    if size not in (2, 4) or lines * size < SWIZZLE_BYTES or extent % FRAGMENT or rows > MAX_BOX or rows % 8:
        return f"a tile of {rows}x{extent} {type_.element_type} has no subtiles of {SWIZZLE_BYTES} bytes"
    columns = subtile_columns(extent, size, transposed=transposed)
    places = tuple(min(place, extent - columns) for place in range(0, extent, columns))
    room = _bytes_left(kernel, role, device) // (consumer_groups_of(role) * rows * columns * size)
    contraction = schedule_of(kernel).contraction
    staged = contraction is not None and contraction.argument_stages
    is_whole = staged and bool(elementwise_reads(write.operands[0], write.block))
    stages = result_stages(len(places), room, sharing, whole=is_whole)
    if stages < 1:
        return "there is no shared memory left for a subtile"
    if transposed:
        return Plan(columns, rows, places, stages, (column, row), transposed)
    return Plan(rows, columns, places, stages, (row, column))


def _bytes_left(kernel: ir.Operation, role: ir.Operation, target: Target) -> int:
    """Shared memory that the block's buffers leave, bytes, less the padding that their alignment may need."""
    buffers = [op.results[0] for op in nested(role.parent) if op.name == "memref.alloc"]
    types = [ir.MemRefType(buffer.type) for buffer in buffers]
    blocks = max(1, schedule_of(kernel).blocks_per_sm)
    free = shared_left(blocks, target)
    # Stages and subtiles are contiguous, followed by small buffers.
    ring = sum(bytes_of(t) for t in types if t.rank > 1)
    return free - SMALL - ring - _exchanged_bytes(kernel, role)


def _exchanged_bytes(kernel: ir.Operation, role: ir.Operation) -> int:
    """Shared memory of reductions across warps, bytes; small exchanges are double-buffered in a persistent loop."""
    schedule = schedule_of(kernel)
    total = 0
    for op in nested(role):
        if op.name != "vector.multi_reduction":
            continue
        tile = ir.VectorType(op.operands[0].type)
        if tuple(tile.shape) == schedule.tile:  # the rest of slices and rows of partials fits in with the small buffers
            dims = list(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
            nbytes = schedule.layout.exchanged(dims) * from_mlir(tile.element_type).bytes
            total += nbytes if op.parent == role else copies_bytes(nbytes)
    return total


def _stage(role: ir.Operation, write: ir.Operation, plan: Plan, order: str) -> None:
    value, target, *indices = write.operands
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    element = ir.MemRefType(target.type).element_type
    consumer_groups = consumer_groups_of(role)
    ring_type = workgroup_memref([consumer_groups * plan.stages, plan.rows, plan.columns], element)
    with ir.InsertionPoint(role), write.location:
        ring = memref.AllocOp(ring_type, [], [], alignment=ir.IntegerAttr.get(i64, SWIZZLE_ALIGNMENT)).result
    in_loop = write.parent != role
    # Of two consumer groups one waits for its loads while the other multiplies.
    in_turn = order == "depth" and consumer_groups == 1
    with ir.InsertionPoint(write), write.location:
        for subtile, offset in enumerate(plan.places):
            stage = arith.constant(index, subtile % plan.stages)
            if consumer_groups > 1:
                (consumer_group,) = role.regions[0].blocks[0].arguments
                stage = arith.addi(arith.muli(consumer_group, arith.constant(index, plan.stages)), stage)
            if subtile >= plan.stages or in_loop:
                async_store_wait(_stores_since(subtile, plan))
                gpu.BarrierOp()
            stage_tile(ring, stage, [value], offset, transposed=plan.transposed, loads_in_turn=in_turn)
            gpu.BarrierOp()
            place = list(indices)
            if offset:
                moved = plan.dims[0 if plan.transposed else 1]
                place[moved] = arith.addi(place[moved], arith.constant(index, offset))
            async_store(target, ring, stage, place, plan.dims)
    with ir.InsertionPoint.at_block_terminator(role.regions[0].blocks[0]), write.location:
        async_store_wait(0)


def _stores_since(subtile: int, plan: Plan) -> int:
    """Number of later stores since the last one that reads the stage of a subtile about to be written."""
    if subtile >= plan.stages:
        return plan.stages - 1
    subtiles = len(plan.places)
    last = max(range(subtile, subtiles, plan.stages))  # of the preceding tile, which begins with the same stage
    return subtiles - 1 - last + subtile


def _is_static(stride: int) -> bool:
    return stride != ir.ShapedType.get_dynamic_stride_or_offset()

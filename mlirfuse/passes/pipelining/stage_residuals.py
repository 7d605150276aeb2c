"""`fuse-stage-residuals`: loads an epilogue's input tiles through the shared memory of its staged results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.dialect.staged_tile import TYPES
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MAX_BOX, SWIZZLE_BYTES, SWIZZLE_ROWS
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import bytes_of, element_bytes
from mlirfuse.support.rewriting import defining_op, integer_of, nested, number_of, ops_named
from mlirfuse.target import Target
from mlirfuse.tiling.contractions.residual_subtiles import ResidualSubtiles, argument_ring, stage_residual
from mlirfuse.tiling.contractions.tile_source import TileSource, elementwise_reads, tile_source


@dataclass(frozen=True)
class FuseStageResiduals(Pass):
    """Makes the producer copy an epilogue's input tile into the stages of the epilogue's result.

    Requires tile programs with `fuse.warp_roles` as `fuse-pipeline-contraction` makes them, whose results
    `fuse-stage-results` has staged. A `vector.transfer_read` of the consumers is replaced where a tensor map can
    describe its source, an argument that the kernel does not write; where a result of the same type, tile and memory
    layout is computed from it elementwise; and where each subtile of that result has a stage. So the copy needs no
    further shared memory, and each warp overwrites only elements that it has read itself, without a barrier. Other
    tiles get stages of their own where the schedule has `argument_stages`. The
    producer starts the copies behind those of the tile's operands. In a persistent loop it first waits until the stores
    of the tile before have read the stages.

    ```mlir
    "fuse.warp_roles"() ({
      scf.for ... {
        %r = vector.transfer_read %R[%m, %n], %pad : memref<8192x4096xbf16>, vector<128x128xbf16>
        ...
    ```
    becomes
    ```mlir
    "fuse.warp_roles"() ({
      scf.for ... iter_args(..., %phase) {
        "fuse.mbarrier_wait"(%landed, %stage, %phase) : ...
        "fuse.mbarrier_wait"(%landed, %next, %phase) : ...
        %r = "fuse.staged_tile"(%subtiles, %stage) {offsets = array<i64: 0, 64>} : (...) -> vector<128x128xbf16>
        ... the result is computed, staged and stored ...
        "fuse.async_store_wait"() {pending = 0 : i64} : () -> ()
        "fuse.mbarrier_arrive"(%free, %group) {warpgroups = 1 : i64} : ...
      }
    }, {
      scf.for ... iter_args(..., %group, %phase) {
        ... copies of the operands ...
        "fuse.mbarrier_wait"(%free, %group, %other_phase) : ...
        "fuse.mbarrier_expect"(%landed, %stage) {bytes = 16384 : i64} : ...
        "fuse.async_load"(%R, %subtiles, %stage, %landed, %m, %n) {dims = array<i64: 0, 1>} : ...
        ...
    ```
    """

    name: ClassVar[str] = "fuse-stage-residuals"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            roles = [op for op in nested(kernel) if op.name == "fuse.warp_roles"] if is_tile_program(kernel) else []
            for role in roles:
                used_rings: set[ir.Value] = set()
                for read in [op for op in nested(role) if op.name == "vector.transfer_read"]:
                    plan = _plan(kernel, role, read, used_rings, target_of_module(module))
                    if isinstance(plan, str):
                        remarks.declined(self, plan, read)
                        continue
                    used_rings.add(plan.ring)
                    where = "the stages of a result" if plan.writes else "stages of their own"
                    remarks.applied(self, f"{len(plan.offsets)} subtiles are loaded through {where}", read)
                    stage_residual(role, read, plan)


def _plan(
    kernel: ir.Operation, role: ir.Operation, read: ir.Operation, used_rings: set[ir.Value], target: Target
) -> ResidualSubtiles | str:
    source = tile_source(kernel, role, read)
    if isinstance(source, str):
        return source
    is_inside = all(ir.BoolAttr(inside).value for inside in read.attributes["in_bounds"])
    if not (is_inside or _is_zero(read.operands[-1])):
        return "the tile is padded with another number than zero"
    results = _results_of(read, transposed=source.transposed)
    plan = _in_stages_of_results(role, results, source, used_rings)
    contraction = schedule_of(kernel).contraction
    if isinstance(plan, str) and contraction is not None and contraction.argument_stages:
        return _in_own_stages(kernel, role, read, source, target)
    return plan


def _is_zero(pad: ir.Value) -> bool:
    """Whether a number is a constant that reads as zero bytes: 0 or false."""
    maker = defining_op(pad)
    if maker is not None and isinstance(value := maker.attributes.get("value"), ir.BoolAttr):
        return not value.value
    return 0 in (number_of(pad), integer_of(pad))


def _in_stages_of_results(
    role: ir.Operation, results: dict[ir.Value, list[ir.Operation]], source: TileSource, used_rings: set[ir.Value]
) -> ResidualSubtiles | str:
    if not results or not isinstance(ir.MemRefType(next(iter(results)).type).element_type, ir.FloatType):
        return "no staged result of its type and memory order is computed elementwise from it"
    rings = {ring: writes for ring, writes in results.items() if ring not in used_rings}
    for ring, writes in rings.items():
        if ir.MemRefType(ring.type).shape[0] == consumer_groups_of(role) * len(writes):
            offsets = tuple(ir.IntegerAttr(write.attributes["offset"]).value for write in writes)
            return ResidualSubtiles(ring, offsets, tuple(writes), source)
    return "the result has fewer stages than subtiles" if rings else "another input tile uses the result's stages"


def _in_own_stages(
    kernel: ir.Operation, role: ir.Operation, read: ir.Operation, source: TileSource, target: Target
) -> ResidualSubtiles | str:
    """A plan with stages that are allocated for it."""
    tile = ir.VectorType(read.results[0].type)
    rows, columns = source.extents(tile)
    width = SWIZZLE_BYTES // element_bytes(tile)
    if str(tile.element_type) not in TYPES or (source.transposed and element_bytes(tile) == 1):
        return f"elements of {tile.element_type} have no stages of their own, or not transposed"
    if columns % width or rows % SWIZZLE_ROWS or rows > MAX_BOX:
        return f"a tile of {rows} rows of {columns} elements is not made of whole swizzle atoms"
    taken = sum(bytes_of(op.results[0].type) for op in ops_named(kernel, "memref.alloc"))
    needed = consumer_groups_of(role) * rows * columns * element_bytes(tile)
    if taken + needed > target.shared_per_block:
        return f"of {target.shared_per_block} bytes of shared memory {taken} are taken: {needed} more are too many"
    # A transposed subtile has some columns of the tile as its rows, and the tile's rows whole.
    offsets, width = ((0,), columns) if source.transposed else (tuple(range(0, columns, width)), width)
    return ResidualSubtiles(argument_ring(role, tile.element_type, rows, width, len(offsets)), offsets, (), source)


def _results_of(read: ir.Operation, *, transposed: bool) -> dict[ir.Value, list[ir.Operation]]:
    """The `fuse.stage_tile`s behind a read of tiles of its type and order that are computed of it, by their rings."""
    found: dict[ir.Value, list[ir.Operation]] = {}
    for op in (op.operation for op in read.block.operations):
        if op.name != "fuse.stage_tile" or is_transposed(op) != transposed:
            continue
        if read in elementwise_reads(op.operands[2], read.block):
            found.setdefault(op.operands[0], []).append(op)
    return found

"""`fuse-stage-residuals`: loads an epilogue's input tiles through the shared memory of its staged results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.analysis.memory.strided_views import may_be_reversed
from mlirfuse.dialect.attributes import ALIGN, WORKSPACE
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MAX_RANK, TENSOR_MAP_STRIDE
from mlirfuse.support.rewriting import backward_slice, nested, number_of
from mlirfuse.tiling.contractions.residual_subtiles import ResidualSubtiles, stage_residual
from mlirfuse.tiling.memory import alignment
from mlirfuse.tiling.slot_ring import read_indices

PURE = frozenset({"arith", "math"})
"""Dialects whose ops work on tiles element by element."""


@dataclass(frozen=True)
class FuseStageResiduals(Pass):
    """Makes the producer copy an epilogue's input tile into the stages of the epilogue's result.

    Requires tile programs with `fuse.warp_roles` as `fuse-pipeline-contraction` makes them, whose results
    `fuse-stage-results` has staged. A `vector.transfer_read` of the consumers is replaced where a tensor map can
    describe its source, an argument that the kernel does not write; where a result of the same type, tile and memory
    layout is computed from it elementwise; and where each subtile of that result has a stage. So the copy needs no
    further shared memory, and each warp overwrites only elements that it has read itself, without a barrier. The
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
                    plan = _plan(kernel, role, read, used_rings)
                    if isinstance(plan, str):
                        remarks.declined(self, plan, read)
                        continue
                    used_rings.add(plan.ring)
                    remarks.applied(
                        self, f"{len(plan.offsets)} subtiles are loaded through the stages of a result", read
                    )
                    stage_residual(role, read, plan)


def _plan(
    kernel: ir.Operation, role: ir.Operation, read: ir.Operation, used_rings: set[ir.Value]
) -> ResidualSubtiles | str:
    mapped = _mapped(kernel, read)
    if isinstance(mapped, str):
        return mapped
    dims, transposed = mapped
    tile_loop = read.parent if read.parent != role else None
    if tile_loop is not None and (tile_loop.name != "scf.for" or tile_loop.parent != role):
        return "not every block reads the tile"
    own = [op.operation for op in read.block.operations]
    made = backward_slice(read_indices(read), own)
    addressing = tuple(op for op in own if op in made)
    if tile_loop is None and addressing:
        return "the consumers compute the tile's position"
    given = {value for op in addressing for value in op.operands} | set(read_indices(read))
    known = [read.block.arguments[0]] if tile_loop is not None else []
    if any(
        isinstance(v.owner, ir.Block) and v.owner.owner in (tile_loop, role) and v not in known for v in given
    ) or any(op.regions for op in addressing):
        return "the producer does not know the tile's position"
    results = _results_of(read, transposed=transposed)
    if not results:
        return "no staged result of its type and memory order is computed elementwise from it"
    rings = {ring: writes for ring, writes in results.items() if ring not in used_rings}
    for ring, writes in rings.items():
        if ir.MemRefType(ring.type).shape[0] == consumer_groups_of(role) * len(writes):
            offsets = tuple(ir.IntegerAttr(write.attributes["offset"]).value for write in writes)
            return ResidualSubtiles(ring, offsets, dims, tuple(writes), addressing, transposed)
    return "the result has fewer stages than subtiles" if rings else "another input tile uses the result's stages"


def _mapped(kernel: ir.Operation, read: ir.Operation) -> tuple[tuple[int, int], bool] | str:
    """The source's dimensions along which a stage's rows and columns run, and whether these are the tile's columns and
    rows; or why no tensor map can copy the tile.
    """
    source, tile = read.operands[0], ir.VectorType(read.results[0].type)
    type_, arguments = ir.MemRefType(source.type), list(kernel.regions[0].blocks[0].arguments)
    results = list(ir.AffineMapAttr(read.attributes["permutation_map"]).value.results)[-2:]
    if len(results) < 2 or not all(isinstance(result, ir.AffineDimExpr) for result in results):
        return "a row or a column is broadcast"
    row, column = (ir.AffineDimExpr(result).position for result in results)
    if source not in arguments or any(
        use.owner.name in ("fuse.async_store", "vector.transfer_write") for use in source.uses
    ):
        return "the source is not a read-only argument"
    attributes = argument_attributes(kernel)[arguments.index(source)]
    align = attributes.get(ALIGN)
    if WORKSPACE in attributes or align is None:
        return "the source is not aligned, or other blocks write it"
    strides, _ = type_.get_strides_and_offset()
    transposed = strides[column] != 1 and strides[row] == 1
    if transposed:
        row, column = column, row
    if (
        strides[column] != 1
        or alignment(type_, column, ir.IntegerAttr(align).value) < TENSOR_MAP_STRIDE
        or 0 in strides
        or type_.rank > MAX_RANK
        or may_be_reversed(attributes)
    ):
        return f"a tensor map cannot describe {type_}"
    is_inside = all(ir.BoolAttr(inside).value for inside in read.attributes["in_bounds"])
    if not isinstance(type_.element_type, ir.FloatType):
        return f"elements of {type_.element_type} are no floating-point numbers"
    if tile.rank < 2 or len(read.operands) != 2 + type_.rank or not (is_inside or number_of(read.operands[-1]) == 0):
        return "the tile has a mask, or is padded with another number than zero"
    return (row, column), transposed


def _results_of(read: ir.Operation, *, transposed: bool) -> dict[ir.Value, list[ir.Operation]]:
    """The `fuse.stage_tile`s behind a read of tiles of its type and order that are computed of it, by their rings."""
    made = {read.results[0]}
    found: dict[ir.Value, list[ir.Operation]] = {}
    for op in (op.operation for op in read.block.operations):
        is_like = op.name == "fuse.stage_tile" and op.operands[2].type == read.results[0].type
        if is_like and op.operands[2] in made and is_transposed(op) == transposed:
            found.setdefault(op.operands[0], []).append(op)
        if op.name.split(".")[0] in PURE and any(operand in made for operand in op.operands):
            made.update(op.results)
    return found

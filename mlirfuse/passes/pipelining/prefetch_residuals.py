"""`fuse-prefetch-residuals`: the producer prefetches tiles that an epilogue reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.prefetch_tile import prefetch_tile
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MAX_BOX, TENSOR_MAP_STRIDE
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import ops_named
from mlirfuse.tiling.contractions.tile_source import TileSource, producer_loop, tile_source
from mlirfuse.tiling.slot_ring import read_indices


@dataclass(frozen=True)
class FusePrefetchResiduals(Pass):
    """Makes the producer prefetch an epilogue's input tiles into the L2, before it copies the operands of their tile.

    Requires tile programs with `fuse.warp_roles` as `fuse-pipeline-contraction` makes them. Consumers read the tiles
    when their products are done, and a block has little else under way then. For each `vector.transfer_read` of the
    consumers that `fuse-stage-residuals` has left, whose source is an argument that the kernel does not write and that
    a tensor map can describe, the producer asks for the tile in front of its loop along k. In a persistent loop that is
    while the consumers are at the tile before. It takes no shared memory, and any type of elements.

    ```mlir
    "fuse.warp_roles"() ({
      scf.for %t = ... {
        %r = vector.transfer_read %R[%m, %n], %pad : memref<8192x4096xf32>, vector<128x128xf32>
        ...
      }
    }, {
      scf.for %t = ... {
        scf.for %k = ... copies of the operands ...
    ```
    becomes
    ```mlir
    }, {
      scf.for %t = ... {
        "fuse.prefetch_tile"(%R, %m, %n) {dims = array<i64: 0, 1>, tile = array<i64: 128, 128>} : ...
        scf.for %k = ... copies of the operands ...
    ```
    """

    name: ClassVar[str] = "fuse-prefetch-residuals"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                continue
            roles = ops_named(kernel, "fuse.warp_roles")
            reads = [(role, op) for role in roles for op in ops_named(role, "vector.transfer_read")]
            if reason := _why_not(kernel, roles, reads):
                remarks.declined(self, reason, kernel)
                continue
            found = list[tuple[ir.Operation, ir.Operation, TileSource]]()
            for role, read in reads:
                source = _source(kernel, role, read)
                if isinstance(source, str):
                    remarks.declined(self, source, read)
                else:
                    remarks.applied(self, "the producer prefetches the tile", read)
                    found.append((role, read, source))
            for role, read, source in reversed(found):  # each in front of those before, so that the first comes first
                _prefetch(role, read, source)


def _why_not(kernel: ir.Operation, roles: Sequence[ir.Operation], reads: Sequence[object]) -> str | None:
    if not roles:
        return "no producer copies a contraction's operands"
    if ops_named(kernel, "fuse.prefetch_tile"):
        return "the producer prefetches tiles already"
    return None if reads else "the consumers read no tiles from device memory"


def _source(kernel: ir.Operation, role: ir.Operation, read: ir.Operation) -> TileSource | str:
    source = tile_source(kernel, role, read)
    if isinstance(source, str):
        return source
    rows, columns = source.extents(ir.VectorType(read.results[0].type))
    if columns * element_bytes(read.operands[0].type) % TENSOR_MAP_STRIDE or rows > MAX_BOX:
        return f"a tile of {rows} rows of {columns} elements has no whole units of {TENSOR_MAP_STRIDE} bytes"
    return source


def _prefetch(role: ir.Operation, read: ir.Operation, source: TileSource) -> None:
    block, array = role.regions[1].blocks[0], read.operands[0]
    extents = source.extents(ir.VectorType(read.results[0].type))
    with read.location:
        if read.parent == role:
            with ir.InsertionPoint.at_block_begin(block):
                prefetch_tile(array, read_indices(read), source.dims, extents)
            return
        loop = producer_loop(role)
        with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]):
            prefetch_tile(array, source.starts(read, read.parent, loop), source.dims, extents)

"""`fuse-prefetch-tiles`: a block prefetches the tile of a later block into the L2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.kernels import body, is_tile_program, kernels, symbol
from mlirfuse.dialect.attributes import STREAMING
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.prefetch_rows import is_rows, prefetch_rows
from mlirfuse.passes.layouts.reduction_points import REDUCTIONS
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import backward_slice, clone, integer_of, ops_named
from mlirfuse.target import Target

MOST_OF_L2 = 0.5
"""Largest share of the L2 for prefetched tiles; beyond it tiles are evicted before they are read. Measured on an
H200."""


@dataclass(frozen=True)
class FusePrefetchTiles(Pass):
    """Prefetches rows that a later wave of blocks will read, while a block waits for its own reductions.

    Requires tile programs. A block issues no loads while it reduces a tile. So behind its tile's first reduction it
    prefetches the tile of the block one wave later into the L2: as many blocks further as the device holds, by the
    schedule's blocks an SM. Blocks of the same wave are running already.

    ```mlir
    scf.forall (%t) in (%n) {
      %x0 = vector.transfer_read %x[%t, %c0], %zero {fuse.streaming, ...} : memref<?x4096xf16>, vector<1x4096xf16>
      %sum = vector.multi_reduction <add>, %x0, %init [1] : vector<1x4096xf16> to vector<1xf16>
    ```
    becomes
    ```mlir
    %later = arith.constant 792 : index
    scf.forall (%t) in (%n) {
      %x0 = vector.transfer_read ...
      %sum = vector.multi_reduction ...
      %next = arith.addi %t, %later : index
      "fuse.prefetch_rows"(%x, %next) {rows = 1 : i64} : (memref<?x4096xf16>, index) -> ()
    ```

    Only for reads of whole rows that no other block reads (`fuse.streaming`), and where a wave's reads fit the allowed
    share of the L2. Blocks that loop over tiles load ahead by themselves (`fuse-stage-persistent-loop`).
    """

    name: ClassVar[str] = "fuse-prefetch-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                continue
            if not target.has_tma:
                remarks.declined(self, f"{target.chip} has no bulk prefetches", kernel)
                continue
            loops = [op for op in body(kernel) if op.name == "scf.forall"]
            reads = [read for loop in loops for read in _reads_of_rows(loop)]
            reductions = [op for loop in loops for op in _directly_in(loop) if op.name in REDUCTIONS]
            if reason := _why_not(kernel, loops, reads, reductions, target):
                remarks.declined(self, reason, kernel)
                continue
            later = _blocks_of_a_wave(kernel, target)
            with ir.InsertionPoint(loops[0]), loops[0].location:
                distance = arith.constant(ir.IndexType.get(), later)
            for read in reads:
                _prefetch(read, loops[0], reductions[0], distance)
            remarks.applied(self, f"{symbol(kernel)} prefetches {len(reads)} tile(s) {later} blocks ahead", kernel)


def _directly_in(loop: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in loop.regions[0].blocks[0].operations]


def _reads_of_rows(loop: ir.Operation) -> Iterator[ir.Operation]:
    """Reads of tiles of whole rows, each tile by one block."""
    inside = _directly_in(loop)
    for op in inside:
        if op.name != "vector.transfer_read" or STREAMING not in op.attributes:
            continue
        buffer, tile = ir.MemRefType(op.operands[0].type), ir.VectorType(op.results[0].type)
        if buffer.rank != tile.rank or not is_rows(buffer) or list(buffer.shape)[1:] != list(tile.shape)[1:]:
            continue
        whole = all(integer_of(index) == 0 for index in list(op.operands)[2 : 1 + buffer.rank])
        identity = ir.AffineMap.get_identity(buffer.rank)
        if whole and ir.AffineMapAttr(op.attributes["permutation_map"]).value == identity:
            yield op


def _why_not(
    kernel: ir.Operation,
    loops: list[ir.Operation],
    reads: list[ir.Operation],
    reductions: list[ir.Operation],
    target: Target,
) -> str | None:
    if ops_named(kernel, "fuse.prefetch_rows"):
        return f"{symbol(kernel)} prefetches rows already"
    if len(loops) != 1 or len(loops[0].regions[0].blocks[0].arguments) != 1:
        return f"{symbol(kernel)} has no single loop over a one-dimensional grid of tiles"
    if not reductions:
        return f"{symbol(kernel)} has no reduction in its tiles"
    if not reads:
        return f"{symbol(kernel)} reads no tiles of whole rows that no other block reads"
    nbytes = sum(bytes_of(read.results[0].type) for read in reads) * _blocks_of_a_wave(kernel, target)
    if nbytes > MOST_OF_L2 * target.l2_bytes:
        return f"tiles of {nbytes >> 20} MB a wave are too large for the L2 of {target.l2_bytes >> 20} MB"
    return None


def _blocks_of_a_wave(kernel: ir.Operation, target: Target) -> int:
    """Tiles in a wave of blocks."""
    schedule = schedule_of(kernel)
    return target.sms * max(1, schedule.blocks_per_sm) // schedule.layout.cluster


def _prefetch(read: ir.Operation, loop: ir.Operation, behind: ir.Operation, distance: ir.Value) -> None:
    """Emits a prefetch of the tile of a later iteration, behind an op of the loop."""
    inside = _directly_in(loop)
    tile = loop.regions[0].blocks[0].arguments[0]
    row = read.operands[1]
    following = inside[inside.index(behind) + 1]
    with ir.InsertionPoint(following), read.location:
        mapping = {tile: arith.addi(tile, distance)}
        makers = backward_slice([row], inside)
        for op in inside:
            if op in makers:
                clone(op, mapping)
        prefetch_rows(read.operands[0], mapping.get(row, row), ir.VectorType(read.results[0].type).shape[0])

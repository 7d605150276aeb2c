"""`lower-stage-tiles`: accumulators go to swizzled shared memory by `stmatrix`, or by plain stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm

from mlirfuse.dialect.shared_memory import PANEL_BYTES, WARPGROUP, element_bytes
from mlirfuse.errors import PassError
from mlirfuse.lowering.hopper import hopper_kernels, thread_number
from mlirfuse.lowering.shared_address import shared_pointer, stage_address
from mlirfuse.passes.base import Pass, Remarks

ROWS = 64  # rows of an accumulator that a warpgroup holds together
WARP_ROWS = 16  # rows of them that a warp holds
CHUNK = 16  # bytes that the swizzle moves as one


@dataclass(frozen=True)
class LowerStageTiles(Pass):
    """Lowers `fuse.stage_tile` to `nvvm.stmatrix` for elements of 16 bits, and to stores of pairs for those of 32.

    Requires a target of sm_90a and one panel a stage. Row r's 16-byte chunk c lies at chunk `c ^ (r % 8)` of the row,
    as the TMA's 128-byte swizzle has it: neither the stores nor the copy meet bank conflicts. A fence makes the writes
    visible to the asynchronous proxy.

    ```mlir
    "fuse.stage_tile"(%ring, %stage, %0, %1, %2, %3) {offset = 0 : i64} : (..., vector<2xbf16>, ...) -> ()
    ```
    becomes
    ```mlir
    nvvm.stmatrix %address, %r0, %r1, %r2, %r3 {layout = #nvvm.mma_layout<row>, ...} : !llvm.ptr<3>, i32, i32, i32, i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    ```

    Raises `TargetError` for another target, and `PassError` for stages of several panels or elements of another size.
    """

    name: ClassVar[str] = "lower-stage-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in hopper_kernels(module, frozenset(("fuse.stage_tile",))):
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _lower(op)
                op.erase()
            remarks.applied(self, f"{len(ops)} stages are written", func)


def _lower(op: ir.Operation) -> None:
    ring, stage, *values = op.operands
    type_ = ir.MemRefType(ring.type)
    _, rows, columns = type_.shape
    size = element_bytes(type_)
    pair = ir.VectorType.get([2], type_.element_type)
    if columns * size != PANEL_BYTES or size not in (2, 4) or any(value.type != pair for value in values):
        raise PassError(f"{len(values)} vectors do not fill a panel of {type_}", where=op)
    across = columns // 8  # fragments along a row
    tiles = len(values) // (2 * across)
    warpgroups = rows // (ROWS * tiles)
    lane, row = _place(stage_address(ring, stage), alone=warpgroups == 1)
    for t in range(tiles):
        base = t * warpgroups * ROWS * PANEL_BYTES
        part = values[t * 2 * across : (t + 1) * 2 * across]
        (_store_matrices if size == 2 else _store_pairs)(lane, row, base, part)
    nvvm.fence_proxy(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)


def _place(stage: ir.Value, *, alone: bool) -> tuple[ir.Value, ir.Value]:
    """The lane (i32), and the byte address (index) of the warp's first row in the first panel.

    A warpgroup that has a panel alone need not be the block's first one.
    """
    index = ir.IndexType.get()
    thread = thread_number()
    warp = arith.shrui(thread, _i32(5))
    offset = arith.muli(arith.andi(warp, _i32(WARPGROUP // 32 - 1)), _i32(WARP_ROWS * PANEL_BYTES))
    if not alone:
        offset = arith.addi(offset, arith.muli(arith.shrui(warp, _i32(2)), _i32(ROWS * PANEL_BYTES)))
    return arith.andi(thread, _i32(31)), arith.addi(stage, arith.index_cast(index, offset))


def _store_matrices(lane: ir.Value, row: ir.Value, base: int, values: Sequence[ir.Value]) -> None:
    """Four 8x8 matrices at a time: the upper and the lower eight rows of 16 columns; a lane names one row of one."""
    r = arith.addi(arith.andi(lane, _i32(7)), arith.andi(lane, _i32(8)))  # row 0-15; the matrices alternate halves
    for first in range(0, len(values), 4):
        chunk = arith.addi(arith.shrui(lane, _i32(4)), _i32(first // 2))
        address = _address(row, r, chunk, base)
        registers = [llvm.bitcast(ir.IntegerType.get_signless(32), value) for value in values[first : first + 4]]
        shape = ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")
        nvvm.stmatrix(address, registers, nvvm.MMALayout.row, shape, nvvm.LdStMatrixEltType.B16)


def _store_pairs(lane: ir.Value, row: ir.Value, base: int, values: Sequence[ir.Value]) -> None:
    """A pair of 4-byte elements is half a chunk."""
    r, within = arith.shrui(lane, _i32(2)), arith.shrui(arith.andi(lane, _i32(3)), _i32(1))
    half = arith.index_cast(ir.IndexType.get(), arith.muli(arith.andi(lane, _i32(1)), _i32(CHUNK // 2)))
    for i, value in enumerate(values):
        column, lower = divmod(i, 2)
        chunk = arith.addi(within, _i32(2 * column))
        address = _address(arith.addi(row, half), r, chunk, base + lower * 8 * PANEL_BYTES)
        llvm.StoreOp(value, address, alignment=CHUNK // 2)


def _address(row: ir.Value, r: ir.Value, chunk: ir.Value, base: int) -> ir.Value:
    """The pointer to a chunk of row `r` below `row`, swizzled; `base` bytes on."""
    swizzled = arith.xori(chunk, arith.andi(r, _i32(7)))
    offset = arith.addi(arith.muli(r, _i32(PANEL_BYTES)), arith.muli(swizzled, _i32(CHUNK)))
    return shared_pointer(arith.addi(row, arith.index_cast(ir.IndexType.get(), offset)), base)


def _i32(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)

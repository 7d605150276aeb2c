"""`lower-stage-tiles`: accumulators go to swizzled shared memory by `stmatrix`, or by plain stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlirfuse.dialect.shared_memory import PANEL_BYTES, WARPGROUP, element_bytes
from mlirfuse.dialect.stage_tile import is_transposed, staged_shape
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

    Requires a target of sm_90a, and one panel a stage where the tile is not transposed. Row r's 16-byte chunk c lies at
    chunk `c ^ (r % 8)` of the row, as the TMA's 128-byte swizzle has it: neither the stores nor the copy meet bank
    conflicts. A fence makes the writes visible to the asynchronous proxy. Transposed tiles go by `stmatrix.trans`, or
    element by element.

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
    transposed, size = is_transposed(op), element_bytes(type_)
    rows, columns = staged_shape(type_, transposed)
    pair = ir.VectorType.get([2], type_.element_type)
    fills = transposed or columns * size == PANEL_BYTES
    if not fills or size not in (2, 4) or any(value.type != pair for value in values):
        raise PassError(f"{len(values)} vectors do not fill a panel of {type_}", where=op)
    across = columns // 8  # fragments along a row
    tiles = len(values) // (2 * across)
    warpgroups = rows // (ROWS * tiles)
    parts = [values[t * 2 * across : (t + 1) * 2 * across] for t in range(tiles)]
    start = stage_address(ring, stage)
    if transposed:
        # The rows of a warpgroup are so many bytes of each row of the stage, in panels.
        height = ROWS * size // PANEL_BYTES * columns
        group = _group_address(start, height * PANEL_BYTES, alone=warpgroups == 1)
        for t, part in enumerate(parts):
            base = t * warpgroups * height * PANEL_BYTES
            if size == 2:
                _store_transposed_matrices(group, base, part)
            else:
                _store_transposed_elements(group, base, part, columns * PANEL_BYTES)
    else:
        lane, row = _place(start, alone=warpgroups == 1)
        for t, part in enumerate(parts):
            (_store_matrices if size == 2 else _store_pairs)(lane, row, t * warpgroups * ROWS * PANEL_BYTES, part)
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
        _stmatrix(_address(row, r, chunk, base), values[first : first + 4], nvvm.MMALayout.row)


def _store_pairs(lane: ir.Value, row: ir.Value, base: int, values: Sequence[ir.Value]) -> None:
    """A pair of 4-byte elements is half a chunk."""
    r, within = arith.shrui(lane, _i32(2)), arith.shrui(arith.andi(lane, _i32(3)), _i32(1))
    half = arith.index_cast(ir.IndexType.get(), arith.muli(arith.andi(lane, _i32(1)), _i32(CHUNK // 2)))
    for i, value in enumerate(values):
        column, lower = divmod(i, 2)
        chunk = arith.addi(within, _i32(2 * column))
        address = _address(arith.addi(row, half), r, chunk, base + lower * 8 * PANEL_BYTES)
        llvm.StoreOp(value, address, alignment=CHUNK // 2)


def _group_address(stage: ir.Value, size: int, *, alone: bool) -> ir.Value:
    """The byte address (index) of what the thread's warpgroup has of a transposed stage, `size` bytes."""
    if alone:
        return stage
    group = arith.shrui(thread_number(), _i32(WARPGROUP.bit_length() - 1))
    return arith.addi(stage, arith.index_cast(ir.IndexType.get(), arith.muli(group, _i32(size))))


def _warp_and_lane() -> tuple[ir.Value, ir.Value]:
    """The warp's number in its warpgroup, and the lane's in its warp."""
    thread = thread_number()
    return arith.andi(arith.shrui(thread, _i32(5)), _i32(WARPGROUP // 32 - 1)), arith.andi(thread, _i32(31))


def _store_transposed_matrices(group: ir.Value, base: int, values: Sequence[ir.Value]) -> None:
    """The same matrices; a lane names a column of one: a row of the panel, with eight rows of the tile in a chunk."""
    warp, lane = _warp_and_lane()
    column = arith.andi(lane, _i32(7))
    half = arith.shrui(arith.andi(lane, _i32(8)), _i32(3))
    chunk = arith.addi(arith.muli(warp, _i32(WARP_ROWS * 2 // CHUNK)), half)
    right = arith.muli(arith.shrui(lane, _i32(4)), _i32(8 * PANEL_BYTES))  # the second pair of matrices is beside it
    place = arith.addi(group, arith.index_cast(ir.IndexType.get(), right))
    for first in range(0, len(values), 4):
        address = _address(place, column, chunk, base + first // 2 * 8 * PANEL_BYTES)
        _stmatrix(address, values[first : first + 4], nvvm.MMALayout.col)


def _store_transposed_elements(group: ir.Value, base: int, values: Sequence[ir.Value], panel_bytes: int) -> None:
    """Each 4-byte element by itself, a warp's in different banks. Two warps share a panel: 32 rows of the tile."""
    index = ir.IndexType.get()
    warp, lane = _warp_and_lane()
    panel = arith.muli(arith.shrui(warp, _i32(1)), _i32(panel_bytes))
    row = arith.shrui(lane, _i32(2))
    within = arith.muli(arith.andi(row, _i32(3)), _i32(4))
    place = arith.addi(group, arith.index_cast(index, arith.addi(panel, within)))
    first = arith.addi(arith.muli(arith.andi(warp, _i32(1)), _i32(WARP_ROWS * 4 // CHUNK)), arith.shrui(row, _i32(2)))
    pair = arith.muli(arith.andi(lane, _i32(3)), _i32(2))
    for i, value in enumerate(values):
        column, lower = divmod(i, 2)
        chunk = arith.addi(first, _i32(lower * 8 * 4 // CHUNK))
        for number, element in enumerate(vector.ToElementsOp(value).results):
            address = _address(place, arith.addi(pair, _i32(number)), chunk, base + column * 8 * PANEL_BYTES)
            llvm.StoreOp(element, address, alignment=4)


def _stmatrix(address: ir.Value, values: Sequence[ir.Value], layout: nvvm.MMALayout) -> None:
    registers = [llvm.bitcast(ir.IntegerType.get_signless(32), value) for value in values]
    shape = ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")
    nvvm.stmatrix(address, registers, layout, shape, nvvm.LdStMatrixEltType.B16)


def _address(row: ir.Value, r: ir.Value, chunk: ir.Value, base: int) -> ir.Value:
    """The pointer to a chunk of row `r` below `row`, swizzled; `base` bytes on."""
    swizzled = arith.xori(chunk, arith.andi(r, _i32(7)))
    offset = arith.addi(arith.muli(r, _i32(PANEL_BYTES)), arith.muli(swizzled, _i32(CHUNK)))
    return shared_pointer(arith.addi(row, arith.index_cast(ir.IndexType.get(), offset)), base)


def _i32(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)

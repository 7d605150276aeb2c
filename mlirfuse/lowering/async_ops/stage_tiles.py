"""`lower-stage-tiles`: stores tiles to swizzled shared memory by `stmatrix`, and loads them by `ldmatrix`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlirfuse.dialect.stage_tile import is_transposed, staged_shape
from mlirfuse.dialect.staged_tile import first_of
from mlirfuse.errors import PassError
from mlirfuse.lowering.async_ops.hopper import kernels_using, thread_number
from mlirfuse.lowering.async_ops.shared_address import shared_pointer, stage_address
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES, SWIZZLE_CHUNK, WARPGROUP, WARPGROUP_ROWS
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import erase

WRITE, READ, WRITE_COLUMNS = "fuse.stage_tile", "fuse.staged_tile", "fuse.stage_columns"

WARP_ROWS = 16  # rows of an accumulator that a warp holds together


@dataclass(frozen=True)
class LowerStageTiles(Pass):
    """Lowers `fuse.stage_tile` to `nvvm.stmatrix` for elements of 16 bits, and to stores of pairs for those of 32.

    Requires a target of sm_90a, and one swizzle atom a stage where the tile is not transposed. Row r's 16-byte chunk c
    lies at chunk `c ^ (r % 8)` of the row, as the TMA's 128-byte swizzle has it: neither the stores nor the copy have
    bank conflicts. A fence makes the writes visible to the asynchronous proxy. Transposed tiles are stored by
    `stmatrix.trans`, or element by element. `fuse.stage_columns`, which is executed in loops, has the same stores.
    `fuse.staged_tile`, the load of a staged tile, becomes `nvvm.ldmatrix` of the same matrices, or loads.

    ```mlir
    "fuse.stage_tile"(%ring, %stage, %0, %1, %2, %3) {offset = 0 : i64} : (..., vector<2xbf16>, ...) -> ()
    ```
    becomes
    ```mlir
    nvvm.stmatrix %address, %r0, %r1, %r2, %r3 {layout = #nvvm.mma_layout<row>, ...} : !llvm.ptr<3>, i32, i32, i32, i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    ```

    Raises `TargetError` for another target, and `PassError` for stages of several swizzle atoms or elements of another
    size.
    """

    name: ClassVar[str] = "lower-stage-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in kernels_using(module, frozenset((WRITE, READ, WRITE_COLUMNS)), lambda target: target.has_tma):
            reads = sum(op.name == READ for op in ops)
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    (_read if op.name == READ else _write)(op)
                erase(op)
            also = f", and {reads} loads of stages" if reads else ""
            remarks.applied(self, f"{len(ops) - reads} stores to stages{also} lowered", func)


@dataclass(frozen=True)
class Piece:
    """Values of one load or store, or of two if the elements are not adjacent.

    Attributes:
        values: up to four pairs of 2-byte elements, a matrix each, or one of 4-byte elements or of bytes.
        addresses: `!llvm.ptr<3>` of a row of a matrix, of a pair, or of each element of a pair.
        layout: the layout of matrices; None for elements.
    """

    values: list[ir.Value]
    addresses: list[ir.Value]
    layout: nvvm.MMALayout | None = None


def _write(op: ir.Operation) -> None:
    alone = op.name == WRITE
    for piece in _pieces(op, list(op.operands)[2 if alone else 3 :], None if alone else op.operands[2]):
        if piece.layout is not None:
            registers = [llvm.bitcast(ir.IntegerType.get_signless(32), value) for value in piece.values]
            nvvm.stmatrix(piece.addresses[0], registers, piece.layout, _matrix_shape(), nvvm.LdStMatrixEltType.B16)
            continue
        (pair,) = piece.values
        parts = [pair] if len(piece.addresses) == 1 else list(vector.ToElementsOp(pair).results)
        for part, address in zip(parts, piece.addresses, strict=True):
            llvm.StoreOp(part, address, alignment=SWIZZLE_CHUNK // 2 // len(parts))
    nvvm.fence_proxy(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)


def _read(op: ir.Operation) -> None:
    first = first_of(op)
    column = None if first is None else arith.constant(ir.IndexType.get(), first)
    for piece in _pieces(op, list(op.results), column):
        for value, loaded in zip(piece.values, _loaded(piece), strict=True):
            value.replace_all_uses_with(loaded)


def _loaded(piece: Piece) -> list[ir.Value]:
    """Loads the values of a piece from shared memory."""
    i32, count, types = ir.IntegerType.get_signless(32), len(piece.values), [value.type for value in piece.values]
    if piece.layout is not None:
        registers = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
        address, b16 = piece.addresses[0], nvvm.LdStMatrixEltType.B16
        loaded = nvvm.ldmatrix(registers, address, count, piece.layout, _matrix_shape(), b16)
        words = [llvm.extractvalue(i32, loaded, ir.DenseI64ArrayAttr.get([i])) for i in range(count)]
        return [llvm.bitcast(type_, word) for type_, word in zip(types, words, strict=True)]
    (type_,) = types
    element = ir.VectorType(type_).element_type
    if element == ir.IntegerType.get_signless(1):  # a byte each in memory
        byte = ir.VectorType.get([2], ir.IntegerType.get_signless(8))
        loaded = llvm.LoadOp(byte, piece.addresses[0], alignment=2).result
        return [arith.trunci(type_, loaded)]
    if len(piece.addresses) == 1:
        return [llvm.LoadOp(type_, piece.addresses[0], alignment=2 * element_bytes(type_)).result]
    elements = [llvm.LoadOp(element, address, alignment=SWIZZLE_CHUNK // 4).result for address in piece.addresses]
    return [vector.FromElementsOp(type_, elements).result]


def _pieces(op: ir.Operation, values: list[ir.Value], column: ir.Value | None = None) -> Iterator[Piece]:
    """A thread's values of a stage, in order, with their addresses in the stage.

    Args:
        op: the load or store.
        values: the thread's values.
        column: the tile's first column (index) of those that the values are of; None for a whole stage.
    """
    ring, stage = list(op.operands)[:2]
    type_ = ir.MemRefType(ring.type)
    transposed, size = is_transposed(op), element_bytes(type_)
    rows, columns = staged_shape(type_, transposed)
    pair = ir.VectorType.get([2], type_.element_type)
    fills = transposed or columns * size == SWIZZLE_BYTES
    may_be_bytes = op.name == READ and not transposed
    if not fills or size not in ((1, 2, 4) if may_be_bytes else (2, 4)) or any(value.type != pair for value in values):
        raise PassError(f"{len(values)} vectors do not fill a swizzle atom of {type_}", where=op)
    fragments_in_row = (columns if column is None else ir.IntegerAttr(op.attributes["columns"]).value) // 8
    tiles = len(values) // (2 * fragments_in_row)
    warpgroups = rows // (WARPGROUP_ROWS * tiles)
    parts = [values[t * 2 * fragments_in_row : (t + 1) * 2 * fragments_in_row] for t in range(tiles)]
    start = stage_address(ring, stage)
    if transposed:
        # A warpgroup's rows take this many bytes of each row of the stage, in swizzle atoms.
        height = WARPGROUP_ROWS * size // SWIZZLE_BYTES * columns
        group = _group_address(start, height * SWIZZLE_BYTES, alone=warpgroups == 1)
        if column is not None:
            group = arith.addi(group, arith.muli(column, arith.constant(ir.IndexType.get(), SWIZZLE_BYTES)))
        for t, part in enumerate(parts):
            base = t * warpgroups * height * SWIZZLE_BYTES
            if size == 2:
                yield from _transposed_matrices(group, base, part)
            else:
                yield from _transposed_elements(group, base, part, columns * SWIZZLE_BYTES)
        return
    lane, row = _warp_position(start, alone=warpgroups == 1)
    first = None
    if column is not None:
        first = arith.divui(arith.index_cast(lane.type, column), _i32(SWIZZLE_CHUNK // size))
    for t, part in enumerate(parts):
        base = t * warpgroups * WARPGROUP_ROWS * SWIZZLE_BYTES
        if size == 2:
            yield from _matrices(lane, row, base, part, first)
        else:
            yield from _pairs(lane, row, base, part, first, size)


def _warp_position(stage: ir.Value, *, alone: bool) -> tuple[ir.Value, ir.Value]:
    """The lane (i32), and the byte address (index) of the warp's first row in the first swizzle atom.

    A warpgroup that owns a whole swizzle atom need not be the block's first warpgroup.
    """
    index = ir.IndexType.get()
    thread = thread_number()
    warp = arith.shrui(thread, _i32(5))
    offset = arith.muli(arith.andi(warp, _i32(WARPGROUP // 32 - 1)), _i32(WARP_ROWS * SWIZZLE_BYTES))
    if not alone:
        offset = arith.addi(offset, arith.muli(arith.shrui(warp, _i32(2)), _i32(WARPGROUP_ROWS * SWIZZLE_BYTES)))
    return arith.andi(thread, _i32(31)), arith.addi(stage, arith.index_cast(index, offset))


def _matrices(
    lane: ir.Value, row: ir.Value, base: int, values: Sequence[ir.Value], before: ir.Value | None
) -> Iterator[Piece]:
    """Yields four 8x8 matrices at a time, which are the upper and lower eight rows of 16 columns.

    A lane gives the address of one row of one matrix; `before` (i32) is the number of chunks before the values'.
    """
    r = arith.addi(arith.andi(lane, _i32(7)), arith.andi(lane, _i32(8)))  # row 0-15; the matrices alternate halves
    for first in range(0, len(values), 4):
        chunk = arith.addi(arith.shrui(lane, _i32(4)), _i32(first // 2))
        chunk = chunk if before is None else arith.addi(chunk, before)
        yield Piece([*values[first : first + 4]], [_address(row, r, chunk, base)], nvvm.MMALayout.row)


def _pairs(
    lane: ir.Value, row: ir.Value, base: int, values: Sequence[ir.Value], before: ir.Value | None, size: int
) -> Iterator[Piece]:
    """Yields pairs of elements of `size` bytes, which a chunk of 16 bytes has whole; `before` is as for `_matrices`."""
    r, place = arith.shrui(lane, _i32(2)), arith.muli(arith.andi(lane, _i32(3)), _i32(2 * size))
    within = arith.index_cast(ir.IndexType.get(), arith.andi(place, _i32(SWIZZLE_CHUNK - 1)))
    position, own = arith.addi(row, within), arith.divui(place, _i32(SWIZZLE_CHUNK))
    for i, value in enumerate(values):
        column, lower = divmod(i, 2)
        chunks, rest = divmod(8 * column * size, SWIZZLE_CHUNK)
        chunk = arith.addi(own, _i32(chunks))
        chunk = chunk if before is None else arith.addi(chunk, before)
        yield Piece([value], [_address(position, r, chunk, base + lower * 8 * SWIZZLE_BYTES + rest)])


def _group_address(stage: ir.Value, size: int, *, alone: bool) -> ir.Value:
    """The byte address (index) of the `size` bytes of a transposed stage that the thread's warpgroup accesses."""
    if alone:
        return stage
    group = arith.shrui(thread_number(), _i32(WARPGROUP.bit_length() - 1))
    return arith.addi(stage, arith.index_cast(ir.IndexType.get(), arith.muli(group, _i32(size))))


def _warp_and_lane() -> tuple[ir.Value, ir.Value]:
    """The warp's number in its warpgroup, and the lane's in its warp."""
    thread = thread_number()
    return arith.andi(arith.shrui(thread, _i32(5)), _i32(WARPGROUP // 32 - 1)), arith.andi(thread, _i32(31))


def _transposed_matrices(group: ir.Value, base: int, values: Sequence[ir.Value]) -> Iterator[Piece]:
    """Yields the matrices of `_matrices` for a transposed stage.

    A lane gives the address of a column of one matrix: a row of the swizzle atom, whose chunks have eight rows of the
    tile each.
    """
    warp, lane = _warp_and_lane()
    column = arith.andi(lane, _i32(7))
    half = arith.shrui(arith.andi(lane, _i32(8)), _i32(3))
    chunk = arith.addi(arith.muli(warp, _i32(WARP_ROWS * 2 // SWIZZLE_CHUNK)), half)
    right = arith.muli(arith.shrui(lane, _i32(4)), _i32(8 * SWIZZLE_BYTES))  # the second pair of matrices is beside it
    position = arith.addi(group, arith.index_cast(ir.IndexType.get(), right))
    for first in range(0, len(values), 4):
        address = _address(position, column, chunk, base + first // 2 * 8 * SWIZZLE_BYTES)
        yield Piece([*values[first : first + 4]], [address], nvvm.MMALayout.col)


def _transposed_elements(group: ir.Value, base: int, values: Sequence[ir.Value], atom_bytes: int) -> Iterator[Piece]:
    """Yields single 4-byte elements of a transposed stage, which are in different banks for the lanes of a warp.

    Two warps share a swizzle atom, which has 32 rows of the tile.
    """
    index = ir.IndexType.get()
    warp, lane = _warp_and_lane()
    atom = arith.muli(arith.shrui(warp, _i32(1)), _i32(atom_bytes))
    row = arith.shrui(lane, _i32(2))
    within = arith.muli(arith.andi(row, _i32(3)), _i32(4))
    position = arith.addi(group, arith.index_cast(index, arith.addi(atom, within)))
    first = arith.addi(
        arith.muli(arith.andi(warp, _i32(1)), _i32(WARP_ROWS * 4 // SWIZZLE_CHUNK)), arith.shrui(row, _i32(2))
    )
    pair = arith.muli(arith.andi(lane, _i32(3)), _i32(2))
    for i, value in enumerate(values):
        column, lower = divmod(i, 2)
        chunk = arith.addi(first, _i32(lower * 8 * 4 // SWIZZLE_CHUNK))
        below = base + column * 8 * SWIZZLE_BYTES
        yield Piece([value], [_address(position, arith.addi(pair, _i32(number)), chunk, below) for number in (0, 1)])


def _matrix_shape() -> ir.Attribute:
    return ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")


def _address(row: ir.Value, r: ir.Value, chunk: ir.Value, base: int) -> ir.Value:
    """The pointer to a chunk of row `r` below `row`, swizzled; `base` bytes on."""
    swizzled = arith.xori(chunk, arith.andi(r, _i32(7)))
    offset = arith.addi(arith.muli(r, _i32(SWIZZLE_BYTES)), arith.muli(swizzled, _i32(SWIZZLE_CHUNK)))
    return shared_pointer(arith.addi(row, arith.index_cast(ir.IndexType.get(), offset)), base)


def _i32(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)

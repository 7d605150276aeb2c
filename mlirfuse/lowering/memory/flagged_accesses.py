"""`lower-flagged-accesses`: flag-in-data exchanges become relaxed accesses at device scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, scf, vector

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.memory.addresses import global_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named, split_constant
from mlirfuse.tiling.tiles import index

FLAGGED_STORE, FLAGGED_LOAD = "fuse.flagged_store", "fuse.flagged_load"

TILE_COLUMNS = 8
"""Columns of a column tile, whose rows are contiguous in memory: the 8x8 accumulators of a warp, a fragment a thread,
then fill two whole lines instead of parts of eight."""


@dataclass(frozen=True)
class LowerFlaggedAccesses(Pass):
    """Lowers `fuse.flagged_store` to stores, and `fuse.flagged_load` to loads that are repeated until no word is empty.

    A number is sent as the complement of its bits. The empty word, 0, then stands for one pattern of NaN, in whose
    place another NaN is sent. Loads and stores are relaxed and of device scope: every word of a vector is atomic by
    itself, and no order between words is needed. A repeated load skips vectors that have arrived. The reader empties
    the words when all have arrived. The layout of a flagged buffer is private to this pass: tiles are stored in column
    tiles of eight columns, so that the threads of a warp write whole lines.

    ```mlir
    "fuse.flagged_store"(%value, %buf, %i, %j) : (vector<2xf32>, memref<?x64xf32>, index, index) -> ()
    // lower-flagged-accesses
    %bits = arith.bitcast %x : f32 to i32
    %word = arith.maxui (arith.xori %bits, %ones), %one : i32
    nvvm.inline_ptx "st.relaxed.gpu.global.v2.b32 [$0], {$1, $2};" ro(%p, %word, ...)
    ```
    """

    name: ClassVar[str] = "lower-flagged-accesses"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, FLAGGED_STORE, FLAGGED_LOAD)
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    (_flagged_store if op.name == FLAGGED_STORE else _flagged_load)(op)
                erase(op)
            if ops:
                remarks.applied(self, f"{len(ops)} flagged accesses lowered", func)


def _flagged_store(op: ir.Operation) -> None:
    value, flagged_buffer, *indices = op.operands
    scalars = list(vector.ToElementsOp(value).results) if isinstance(value.type, ir.VectorType) else [value]
    # The pattern of NaN whose word would be 0 is sent as another one.
    words = [arith.maxui(arith.xori(arith.bitcast(_i32(), x), _constant(-1)), _constant(1)) for x in scalars]
    _store(_word_pointer(flagged_buffer, indices), words)


def _flagged_load(op: ir.Operation) -> None:
    flagged_buffer, *indices = op.operands
    partials, rank = ir.IntegerAttr(op.attributes["partials"]).value, ir.MemRefType(flagged_buffer.type).rank
    type_ = op.results[0].type
    width = ir.VectorType(type_).shape[0] if isinstance(type_, ir.VectorType) else 1
    places = [indices[n : n + rank] for n in range(0, len(indices), rank)]
    pointers = [
        _word_pointer(flagged_buffer, [arith.addi(first, index(partial)), *rest])
        for first, *rest in places
        for partial in range(partials)
    ]
    loop = scf.WhileOp([_i32()] * (width * len(pointers)), [_constant(0)] * (width * len(pointers)))
    before = loop.before.blocks.append(*[_i32()] * (width * len(pointers)), arg_locs=None)
    with ir.InsertionPoint(before):
        words = list(before.arguments)
        for n, pointer in enumerate(pointers):
            at = slice(n * width, (n + 1) * width)
            words[at] = _load_missing(pointer, words[at])
        is_missing = arith.cmpi(arith.CmpIPredicate.eq, reduce(arith.minui, words), _constant(0))
        scf.ConditionOp(is_missing, words)
    after = loop.after.blocks.append(*[_i32()] * (width * len(pointers)), arg_locs=None)
    with ir.InsertionPoint(after):
        scf.YieldOp(list(after.arguments))
    for pointer in pointers:
        _store(pointer, [_constant(0)] * width)
    f32 = ir.F32Type.get()
    numbers = [arith.bitcast(f32, arith.xori(word, _constant(-1))) for word in loop.results]
    for n, result in enumerate(op.results):
        own = numbers[n * width : (n + 1) * width]
        result.replace_all_uses_with(own[0] if width == 1 else vector.FromElementsOp(type_, own).result)


def _word_pointer(flagged_buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """The pointer to the word of an element; in flagged buffers of tiles the words of the column tile's next columns
    follow.
    """
    type_ = ir.MemRefType(flagged_buffer.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    if type_.rank < 3 or dynamic in type_.shape[-2:] or type_.shape[-1] % TILE_COLUMNS:
        return global_pointer(flagged_buffer, indices)
    *lead, row, column = indices
    rest, known = split_constant(column)
    if known % TILE_COLUMNS:
        rest, known = column, 0
    height = type_.shape[-2] * TILE_COLUMNS
    column_tile, inside = arith.divui(rest, index(TILE_COLUMNS)), arith.remui(rest, index(TILE_COLUMNS))
    below, rows = split_constant(row)
    place = arith.addi(
        arith.muli(column_tile, index(height)), arith.addi(arith.muli(below, index(TILE_COLUMNS)), inside)
    )
    place = arith.addi(place, index(known // TILE_COLUMNS * height + rows * TILE_COLUMNS))
    return global_pointer(flagged_buffer, [*lead, index(0), place])


def _load_missing(pointer: ir.Value, words: Sequence[ir.Value]) -> list[ir.Value]:
    """The words at an address; loads them again where one of the given words is empty."""
    count = len(words)
    new, old = [f"${n}" for n in range(count)], [f"${count + 1 + n}" for n in range(count)]
    lines = [f".reg .pred p; .reg .b32 m; mov.b32 m, {old[0]};"]
    lines += [f"min.u32 m, m, {word};" for word in old[1:]]
    lines += ["setp.eq.u32 p, m, 0;", *(f"mov.b32 {a}, {b};" for a, b in zip(new, old, strict=True))]
    lines += [f"@p ld.relaxed.gpu.global{_suffix(count)} {_group(new)}, [${count}];"]
    return list(nvvm.InlinePtxOp([_i32()] * count, [pointer, *words], [], "{ " + " ".join(lines) + " }").results)


def _store(pointer: ir.Value, words: Sequence[ir.Value]) -> None:
    names = _group([f"${1 + n}" for n in range(len(words))])
    nvvm.InlinePtxOp([], [pointer, *words], [], f"st.relaxed.gpu.global{_suffix(len(words))} [$0], {names};")


def _suffix(count: int) -> str:
    return ".b32" if count == 1 else f".v{count}.b32"


def _group(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _constant(value: int) -> ir.Value:
    return arith.constant(_i32(), value)

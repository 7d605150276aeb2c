"""`fuse-skip-zeros`: loops along k end where an operand has nothing but zeros left for their tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.contractions.k_ends import KEnds, k_ends
from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, integer_of
from mlirfuse.tiling.contractions.loops import ContractionLoop, TileOperand, contraction_loop, contraction_loops
from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class FuseSkipZeros(Pass):
    """Ends the loop along k of a tile behind the last step in which an operand's tile may be no zero.

    Requires a tile program with one loop that contracts, from 0 to a number, and an operand that is a gathered view,
    whose columns fall into classes of which some leave the source earlier along k than others
    (`analysis/contractions/k_ends.py`), and tiles that lie in one class. So do the filters of a strided data gradient:
    of 3 taps and a stride of 2, pixels of one class meet two taps a dimension, and those of the other class one. The
    pass declines for other loops, such as those that several blocks share.

    ```mlir
    %view = "fuse.gathered_view"(%w) {basis = array<i64: 2, 128, 2, 64>, ranks = array<i64: 2, 2>,
        map = affine_map<(j, f, a, c) -> (f, 2 * j + a, c)>} : (memref<128x3x64xf16>) -> memref<256x128xf16, ...>
    scf.for %k = %c0 to %c256 step %c64 iter_args(...) { ... vector.transfer_read %view[%k, %n] ... }
    ```
    becomes
    ```mlir
    %end = ...                                       // 256 for %n < 64, else 128
    scf.for %k = %c0 to %end step %c64 iter_args(...) { ... }
    ```
    """

    name: ClassVar[str] = "fuse-skip-zeros"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            loops = [loop for loop, _ in contraction_loops(kernel)] if is_tile_program(kernel) else []
            for loop in loops:
                found = _ends(loop)
                if isinstance(found, str):
                    remarks.declined(self, found, loop)
                    continue
                operand, ends = found
                with ir.InsertionPoint(loop), loop.location:
                    loop.operands[1] = _end(ends, operand.indices[_columns(operand)])
                remarks.applied(self, f"tiles sum {100 * ends.share:.0f} % of k in the mean", kernel)


def _ends(loop: ir.Operation) -> tuple[TileOperand, KEnds] | str:
    """The operand by which a loop may end earlier, and where; or why it may not."""
    matched = contraction_loop(loop)
    if isinstance(matched, str):
        return matched
    views = [operand for operand in matched.operands if _is_view(operand)]
    if not views:
        return "no operand is a gathered view"
    if len(matched.contracts) > 1 or matched.sums:
        return "the loop makes several products, or sums of an operand"
    bounds = [integer_of(value) for value in list(loop.operands)[:3]]
    if bounds[0] != 0 or None in bounds:
        return "the loop is a part of k"
    for operand in views:
        view = defining_op(operand.source)
        assert view is not None  # a gathered view
        shape = ir.MemRefType(view.operands[0].type).shape
        k, columns = _k(operand), _columns(operand)
        ends = k_ends(gather_of(view.attributes), shape, k, columns)
        width = operand.rows if operand.dims[0] == columns else operand.columns
        if ends is None or bounds[1] != prod(ends.extents) or not _is_whole(matched, operand):
            continue
        if ends.columns % width:
            return f"tiles of {width} columns have several classes, of {ends.columns} columns"
        return operand, ends
    return "no operand ends earlier along k for some columns than for others"


def _is_view(operand: TileOperand) -> bool:
    maker = defining_op(operand.source)
    return maker is not None and maker.name == DEFINITION.full_name


def _k(operand: TileOperand) -> int:
    return operand.dims[1] if operand.major == "k" else operand.dims[0]


def _columns(operand: TileOperand) -> int:
    return operand.dims[0] if operand.major == "k" else operand.dims[1]


def _is_whole(matched: ContractionLoop, operand: TileOperand) -> bool:
    """Whether a step's index along k is the loop's variable, and the tile's columns are known in front of the loop."""
    body = matched.loop.regions[0].blocks[0]
    column = operand.indices[_columns(operand)]
    return bool(operand.indices[_k(operand)] == body.arguments[0]) and column.owner != body and not _is_in(column, body)


def _is_in(value: ir.Value, block: ir.Block) -> bool:
    maker = defining_op(value)
    return maker is not None and maker.block == block


def _end(ends: KEnds, column: ir.Value) -> ir.Value:
    """Emits where k ends for the class of a column."""
    rest: ir.Value = arith.DivUIOp(column, index(ends.columns)).result
    class_: list[ir.Value] = []
    for extent in reversed(ends.classes):
        class_.insert(0, arith.RemUIOp(rest, index(extent)).result)
        rest = arith.DivUIOp(rest, index(extent)).result
    end: ir.Value = index(0)
    for extent, limit in zip(ends.extents, ends.limits, strict=True):
        count = index(extent) if limit is None else _count(extent, limit.step, limit.room, limit.weights, class_)
        last = arith.SubIOp(count, index(1)).result
        end = arith.AddIOp(arith.MulIOp(end, index(extent)).result, last).result
    return arith.AddIOp(end, index(1)).result


def _count(extent: int, step: int, room: int, weights: Sequence[int], class_: Sequence[ir.Value]) -> ir.Value:
    """Emits how many values of a component of k there are for a class."""
    left: ir.Value = index(room)
    for value, weight in zip(class_, weights, strict=True):
        if weight:
            left = arith.SubIOp(left, arith.MulIOp(value, index(weight)).result).result
    steps = arith.DivSIOp(arith.MaxSIOp(left, index(step)).result, index(step)).result
    return arith.MinSIOp(steps, index(extent)).result

"""How `mma.sync` multiplies fragments of each type: their conversion, and which converted fragments are multiplied.

A fragment holds 32 bytes of k. 16-bit types and int8 take one instruction. f32 takes one instruction in tf32, either
rounded or split into a large and a small part. float8 is widened exactly to f16 and takes two instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.support.precision import TF32, TF32X3

Split = Callable[[ir.Value], list[ir.Value]]


@dataclass(frozen=True)
class Scheme:
    """How fragments are converted and multiplied.

    Attributes:
        rows: converts a fragment of operand A to operands of `fuse.mma`.
        columns: converts a fragment of operand B likewise.
        pairs: pairs of converted operands that are multiplied, in order.
        apart: whether the products are summed separately before they are added to the accumulators; tensor cores
            truncate when they add, which would be the largest error of a long sum.
    """

    rows: Split
    columns: Split
    pairs: Sequence[tuple[int, int]]
    apart: bool = False


def scheme_of(left: ir.Type, right: ir.Type, precision: str) -> Scheme | None:
    """The scheme for operands of these element types; None where tensor cores do not multiply them."""
    if left == right and (isinstance(left, ir.F16Type | ir.BF16Type) or left == ir.IntegerType.get_signless(8)):
        return Scheme(_whole, _whole, ((0, 0),))
    if left == right and isinstance(left, ir.F32Type) and precision == TF32:
        return Scheme(_rounded, _rounded, ((0, 0),))
    if left == right and isinstance(left, ir.F32Type) and precision == TF32X3:
        # Small terms first; the product of both small parts is below the rounding error of f32 and left out.
        return Scheme(_large_and_small, _large_and_small, ((1, 0), (0, 1), (0, 0)), apart=True)
    if all(isinstance(t, ir.Float8E4M3FNType | ir.Float8E5M2Type) for t in (left, right)):
        return Scheme(_widened_rows, _widened_columns, ((0, 0), (1, 1)))
    return None


def _whole(fragment: ir.Value) -> list[ir.Value]:
    return [fragment]


def _rounded(fragment: ir.Value) -> list[ir.Value]:
    """Rounds to tf32, to nearest; the instruction itself would truncate."""
    tf32 = ir.VectorType.get(ir.VectorType(fragment.type).shape, ir.FloatTF32Type.get())
    return [arith.TruncFOp(tf32, fragment, roundingmode=arith.RoundingMode.to_nearest_away).result]


def _large_and_small(fragment: ir.Value) -> list[ir.Value]:
    """Splits f32 into its upper 11 bits and 11 bits of the remainder."""
    (large,) = _rounded(fragment)
    rest = arith.SubFOp(fragment, arith.ExtFOp(fragment.type, large).result).result
    return [large, *_rounded(rest)]


def _widened_rows(fragment: ir.Value) -> list[ir.Value]:
    """Widens float8 to f16, 16 bytes of k at a time, each with 4 bytes of the upper and of the lower rows.

    An instruction takes 2 neighbours along k and 2 more at a distance of 8. Here 4 neighbours in memory stand for
    these: k is only traversed in another order, which is the same for the columns.
    """
    values = list(vector.ToElementsOp(_widened(fragment)).results)
    parts = []
    for first in (0, 8):
        upper, lower = values[first : first + 4], values[first + 4 : first + 8]
        parts.append([*upper[:2], *lower[:2], *upper[2:], *lower[2:]])
    f16 = ir.F16Type.get()
    return [vector.FromElementsOp(ir.VectorType.get([8], f16), part).result for part in parts]


def _widened_columns(fragment: ir.Value) -> list[ir.Value]:
    wide = _widened(fragment)
    half = ir.VectorType.get([4], ir.F16Type.get())
    return [vector.ExtractStridedSliceOp(half, wide, [first], [4], [1]).result for first in (0, 4)]


def _widened(fragment: ir.Value) -> ir.Value:
    wide = ir.VectorType.get(ir.VectorType(fragment.type).shape, ir.F16Type.get())
    return arith.ExtFOp(wide, fragment).result

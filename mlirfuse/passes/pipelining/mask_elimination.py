"""Removes masks of tiles that lie inside of the data."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.support.rewriting import defining_op, erase, integer_of

MASK, APPLY, AT_LEAST = "vector.create_mask", "affine.apply", "arith.maxui"


def drop_masks(ops: Sequence[ir.Operation], variable: ir.Value, tiles: ir.Value) -> None:
    """Removes masks that hold everywhere in a loop over tiles that stops before the last of them.

    Only the last tile may reach past the end of the data. A mask of tile t of T rows in n compares rows with n - t * T;
    where t is less than ceil(n / T) - 1, that is more than T.

    Args:
        ops: the ops of the loop's body.
        variable: the loop's variable, the number of the tile at hand.
        tiles: the number of tiles; nothing is removed where this is not known to be a rounded-up quotient.
    """
    for mask in [op for op in ops if op.name == MASK and _is_whole(op, variable, tiles)]:
        _keep_selected(mask.results[0])
        _erase_unused(mask)


def _is_whole(mask: ir.Operation, variable: ir.Value, tiles: ir.Value) -> bool:
    """Whether a mask's bounds are 1 along extents of 1, and the rows that are left from the tile at hand on."""
    shape = ir.VectorType(mask.results[0].type).shape
    return all(
        integer_of(bound) == 1 if extent == 1 else _is_left(bound, extent, variable, tiles)
        for bound, extent in zip(mask.operands, shape, strict=True)
    )


def _is_left(bound: ir.Value, rows: int, variable: ir.Value, tiles: ir.Value) -> bool:
    """Whether a bound is n - rows * variable, or 1 if that is more, where the number of tiles is ceil(n / rows)."""
    left, count = defining_op(bound), defining_op(tiles)
    if left is not None and left.name == AT_LEAST and integer_of(left.operands[1]) == 1:
        left = defining_op(left.operands[0])
    if left is None or count is None or left.name != APPLY or count.name != APPLY:
        return False
    here, all_rows = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_symbol(0)
    return (
        left.attributes["map"] == _map(1, all_rows - here * rows)
        and count.attributes["map"] == _map(0, ir.AffineExpr.get_ceil_div(all_rows, rows))
        and list(left.operands) == [variable, *count.operands]
    )


def _map(dims: int, expr: ir.AffineExpr) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get(dims, 1, [expr]))


def _keep_selected(mask: ir.Value) -> None:
    """Replaces selections by a mask that holds everywhere by the selected value."""
    for user in dict.fromkeys(use.owner.operation for use in mask.uses):
        if user.name == "vector.broadcast":
            _keep_selected(user.results[0])
        elif user.name == "arith.select" and user.operands[0] == mask:
            user.results[0].replace_all_uses_with(user.operands[1])
        else:
            continue
        _erase_unused(user)


def _erase_unused(op: ir.Operation) -> None:
    if not list(op.results[0].uses):
        erase(op)

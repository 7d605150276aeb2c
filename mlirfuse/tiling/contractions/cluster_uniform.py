"""Which values are uniform in a cluster: the same in all of its blocks, whose numbers follow each other."""

from __future__ import annotations

from math import gcd

from mlir import ir

from mlirfuse.support.rewriting import defining_op


def is_cluster_uniform(value: ir.Value, number: ir.Value, cluster: int) -> bool:
    """Whether a value is the same for the numbers n*cluster to n*cluster + cluster - 1 of a block.

    Follows index arithmetic from the number: what does not depend on it is shared; what counts up by one in a cluster
    from a multiple of its size, as the number itself does, is shared when it is divided by a multiple of the size.
    """
    if value == number:
        return False
    op = defining_op(value)
    if op is None:
        return True  # another argument
    if op.name == "arith.divui" and _counts(op.operands[0], number, cluster):
        return _multiple(op.operands[1]) % cluster == 0
    return not op.regions and all(is_cluster_uniform(operand, number, cluster) for operand in op.operands)


def _counts(value: ir.Value, number: ir.Value, cluster: int) -> bool:
    """Whether a value counts up by one in a cluster, from a multiple of its size."""
    if value == number:
        return True
    op = defining_op(value)
    if op is None or op.name not in ("arith.remui", "arith.addi"):
        return False
    first, second = op.operands
    if op.name == "arith.addi":
        is_start = is_cluster_uniform(first, number, cluster) and _multiple(first) % cluster == 0
        return is_start and _counts(second, number, cluster)
    return _counts(first, number, cluster) and _multiple(second) % cluster == 0


def _multiple(value: ir.Value) -> int:
    """A number that the value is known to be a multiple of."""
    op = defining_op(value)
    if op is None:
        return 1
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    if op.name == "arith.muli":
        return _multiple(op.operands[0]) * _multiple(op.operands[1])
    if op.name == "affine.apply":
        return _divisor(ir.AffineMapAttr(op.attributes["map"]).value.results[0])
    return 1


def _divisor(expr: ir.AffineExpr) -> int:
    """A number that divides an affine expression, whatever its symbols are."""
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    if isinstance(expr, ir.AffineMulExpr):
        return _divisor(expr.lhs) * _divisor(expr.rhs)
    if isinstance(expr, ir.AffineAddExpr):
        return gcd(_divisor(expr.lhs), _divisor(expr.rhs))
    return 1


def tile_multiple(blocks: ir.Operation) -> int:
    """A number that the number of iterations of a loop over blocks is known to be a multiple of."""
    static = ir.DenseI64ArrayAttr(blocks.attributes["staticUpperBound"])[0]
    return static if static != ir.ShapedType.get_dynamic_size() else _multiple(blocks.operands[0])

"""Which index values are uniform in a cluster, that is, equal in all thread blocks of the cluster."""

from __future__ import annotations

from mlir import ir

from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.rewriting import defining_op


def is_cluster_uniform(value: ir.Value, number: ir.Value, cluster: int) -> bool:
    """Whether a value is equal in all thread blocks of a cluster: blocks n*cluster to n*cluster + cluster - 1.

    A value is uniform if it does not depend on the block's `number`, or if it is the quotient of a consecutive value
    (see `_counts`) and a multiple of the cluster size.
    """
    if value == number:
        return False
    op = defining_op(value)
    if op is None:
        return True  # another argument
    if op.name == "arith.divui" and _counts(op.operands[0], number, cluster):
        return divisor_of(op.operands[1]) % cluster == 0
    return not op.regions and all(is_cluster_uniform(operand, number, cluster) for operand in op.operands)


def _counts(value: ir.Value, number: ir.Value, cluster: int) -> bool:
    """Whether a value is consecutive over a cluster's blocks, starting from a multiple of the cluster size."""
    if value == number:
        return True
    op = defining_op(value)
    if op is None or op.name not in ("arith.remui", "arith.addi"):
        return False
    first, second = op.operands
    if op.name == "arith.addi":
        is_start = is_cluster_uniform(first, number, cluster) and divisor_of(first) % cluster == 0
        return is_start and _counts(second, number, cluster)
    return _counts(first, number, cluster) and divisor_of(second) % cluster == 0


def tile_multiple(blocks: ir.Operation) -> int:
    """A known divisor of the number of iterations of a loop over blocks; the number itself if it is static."""
    static = ir.DenseI64ArrayAttr(blocks.attributes["staticUpperBound"])[0]
    return static if static != ir.ShapedType.get_dynamic_size() else divisor_of(blocks.operands[0])

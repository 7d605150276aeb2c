"""Common checks of joint reductions, the ops that compute two statistics in one reduction."""

from __future__ import annotations

from mlir import ir

JOINT_REDUCTIONS = frozenset({"fuse.moments", "fuse.exp_sum"})
"""Ops with one source, reduced dimensions `dims`, and two results whose partials merge as pairs."""


def verify_joint_reduction(op: ir.Operation) -> str | None:
    """What is wrong with the dims and types of a joint reduction, or None."""
    source = ir.ShapedType(op.operands[0].type)
    if not isinstance(source.element_type, ir.FloatType):
        return f"elements must be floats, not {source.element_type}"
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    if not dims or sorted(set(dims)) != dims or dims[-1] >= source.rank or dims[0] < 0:
        return f"dims {dims} must be ascending dimensions of {source}"
    kept = [extent for d, extent in enumerate(source.shape) if d not in dims]
    for result in op.results:
        if not isinstance(result.type, ir.ShapedType):
            return f"result {result.type} must be shaped"
        if ir.ShapedType(result.type).element_type != source.element_type:
            return f"elements of result {result.type} must be the source's, {source.element_type}"
        single = not kept and isinstance(result.type, ir.VectorType) and list(result.type.shape) == [1]
        if list(ir.ShapedType(result.type).shape) != kept and not single:
            return f"result {result.type} must have the shape {kept} that dims {dims} leave of {source}"
    return None

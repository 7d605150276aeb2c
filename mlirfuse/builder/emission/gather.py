"""Views of tensors through affine maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from mlirfuse.builder.state import TensorBase
from mlirfuse.dialect.gathered_view import Gather, gathered_view
from mlirfuse.support.dtypes import bool_


def gathered(
    source: TensorBase,
    extents: tuple[int, ...],
    indices: Callable[[Sequence[ir.AffineExpr]], list[ir.AffineExpr]],
    *,
    inside: bool = False,
) -> TensorBase:
    """A view of a tensor with these extents, which is zero outside of the tensor.

    Args:
        source: the tensor, of static extents.
        extents: the view's, which are positive.
        indices: maps an index of the view to one of the source.
        inside: whether the view's elements are bools that say which of its indices are inside of the source.
    """
    with source.state.emitting():
        at = [ir.AffineExpr.get_dim(d) for d in range(len(extents))]
        within = tuple(ir.RankedTensorType(source.value.type).shape) if inside else None
        gather = Gather(tuple((n,) for n in extents), ir.AffineMap.get(len(extents), 0, indices(at)), within)
        value = gathered_view(source.value, gather)
        source.state.number(value.owner.operation)
    return source.state.wrap(value, extents, bool_ if inside else source.dtype)

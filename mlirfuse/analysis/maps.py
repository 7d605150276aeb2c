"""Reading affine maps that select loops."""

from __future__ import annotations

from mlir import ir

from mlirfuse.errors import IRError


def projected_axes(attribute: ir.AffineMapAttr) -> tuple[int | None, ...]:
    """For each result of a map, the loop it selects; None for the constant 0.

    Raises:
        IRError: a result is neither a loop nor 0; such an access is not a projection.
    """
    axes: list[int | None] = []
    for expr in attribute.value.results:
        if isinstance(expr, ir.AffineDimExpr):
            axes.append(expr.position)
        elif isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
            axes.append(None)
        else:
            raise IRError(
                f"indexing map {attribute} is not a projection of its loops",
                hint="use maps whose results are single loops or 0",
            )
    return tuple(axes)

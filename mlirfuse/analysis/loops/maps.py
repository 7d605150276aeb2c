"""Reading affine maps that select loops."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.errors import IRError


def projected_axes(attribute: ir.AffineMapAttr) -> tuple[int | None, ...]:
    """For each result of a map the loop that it selects; None for the constant 0.

    Raises:
        IRError: a result is neither a loop nor 0, or two are the same loop; such an access is not a projection.
    """
    axes = selected_loops(attribute)
    if repeats_a_loop(attribute):
        raise _no_projection(attribute)
    return axes


def selected_loops(attribute: ir.AffineMapAttr) -> tuple[int | None, ...]:
    """`projected_axes` of a map whose results may be the same loop, as those of a diagonal are."""
    axes: list[int | None] = []
    for expr in attribute.value.results:
        if isinstance(expr, ir.AffineDimExpr):
            axes.append(expr.position)
        elif isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
            axes.append(None)
        else:
            raise _no_projection(attribute)
    return tuple(axes)


def repeats_a_loop(attribute: ir.AffineMapAttr) -> bool:
    """Whether results of a map are the same loop, as the map of a diagonal has them."""
    loops = [expr.position for expr in attribute.value.results if isinstance(expr, ir.AffineDimExpr)]
    return len(set(loops)) < len(loops)


def _no_projection(attribute: ir.AffineMapAttr) -> IRError:
    return IRError(
        f"indexing map {attribute} is not a projection of its loops",
        hint="use maps whose results are different single loops, or 0",
    )


def through(
    reader: Sequence[int | None], value_axes: Sequence[int | None], source_axes: Sequence[int | None]
) -> tuple[int | None, ...]:
    """Composes a producer's indexing map into its consumer.

    Args:
        reader: the consumer's loop along each axis of the value; None for the constant 0.
        value_axes: the producer's loop along each axis of the value.
        source_axes: the producer's loop along each axis of its source.

    Returns:
        The consumer's loop along each axis of the source.
    """
    by_loop = {loop: reader[axis] for axis, loop in enumerate(value_axes) if loop is not None}
    return tuple(None if loop is None else by_loop[loop] for loop in source_axes)


def projection(loop_count: int, axes: Sequence[int | None]) -> ir.AffineMapAttr:
    """The map whose results are the loops `axes`, or 0 for None; the inverse of `projected_axes`."""
    exprs = [ir.AffineExpr.get_constant(0) if a is None else ir.AffineExpr.get_dim(a) for a in axes]
    return ir.AffineMapAttr.get(ir.AffineMap.get(loop_count, 0, exprs))

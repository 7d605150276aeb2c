"""`fuse.scatter`: puts the elements of a tensor at the positions of another shape that an affine map gives.

```mlir
%dx = "fuse.scatter"(%classes) {basis = array<i64: 2, 2, 8, 28, 28, 64>, ranks = array<i64: 2, 3, 1>,
                                map = affine_map<(a, b, n, h, w, c) -> (n, 2 * h + a, 2 * w + b, c)>}
    : (tensor<4x6272x64xf16>) -> tensor<8x56x56x64xf16>
```

The counterpart of `fuse.gathered_view` for a result. Each dimension of the source is numbered by components, the last
one fastest: dimension i by the next `ranks[i]` entries of `basis`, whose product is the dimension's extent. The map
takes all components to an index of the result, where the source's element is put; elements whose index is outside of
the result are left out. The map reaches each position of the result exactly once: each of its expressions is a constant
plus components of its own, by factors that are those of a number with these components as digits.

The op makes a result of a kernel on tensors that computes a matrix product. The kernel stores its tiles at these
positions (`fuse.scattered`), so that no array in the source's order exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.gathered_view import Gather, gather_of
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.rewriting import defining_op


def scatter_problem(scatter: Gather, shape: Sequence[int]) -> str | None:
    """Why a map from components does not reach each position of a shape exactly once, or None."""
    extents, seen = scatter.components, set[int]()
    for axis, (expr, size) in enumerate(zip(scatter.map.results, shape, strict=True)):
        linear = coefficients(expr, len(extents))
        if linear is None:
            return f"index {axis} of map {scatter.map} is not linear"
        factors, start = linear
        digits = sorted((factor, d) for d, factor in enumerate(factors) if factor and extents[d] > 1)
        if seen & {d for _, d in digits}:
            return f"index {axis} of map {scatter.map} shares a component with another index"
        seen |= {d for _, d in digits}
        reach = 1
        for factor, d in digits:
            if factor != reach:
                return f"index {axis} of map {scatter.map} reaches positions twice, or not at all"
            reach *= extents[d]
        if start > 0 or start + reach < size:
            return f"index {axis} of map {scatter.map} leaves out positions below {size}"
    if missing := [d for d, extent in enumerate(extents) if extent > 1 and d not in seen]:
        return f"map {scatter.map} puts elements of component {missing[0]} at one position"
    return None


def verify_scattered(op: ir.Operation, source: ir.ShapedType, result: ir.ShapedType) -> str | None:
    """What is wrong with the attributes of an op whose `source`, in the order of components, is put in `result`."""
    flat, ranks = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("basis", "ranks"))
    if sum(ranks) != len(flat) or any(n < 1 for n in flat):
        return f"ranks {ranks} must partition the extents {flat}, which are positive"
    scatter = gather_of(op.attributes)
    if source.element_type != result.element_type or not source.has_static_shape or not result.has_static_shape:
        return f"{source} and {result} must have static shapes and one element type"
    if list(source.shape) != list(scatter.shape):
        return f"the source's shape must be {scatter.shape}, not {list(source.shape)}"
    if scatter.map.n_dims != len(flat) or scatter.map.n_symbols or len(scatter.map.results) != result.rank:
        return f"map {scatter.map} must take {len(flat)} components to {result.rank} indices"
    return scatter_problem(scatter, list(result.shape))


def _verify(op: ir.Operation) -> str | None:
    if any(use.owner.operation.name != "func.return" for use in op.results[0].uses):
        return "its result may only be returned"
    return verify_scattered(op, ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type))


DEFINITION = OpDefinition(
    "scatter",
    operands=(("source", SINGLE),),
    results=(("result", SINGLE),),
    attributes=("basis", "ranks", "map"),
    verify=_verify,
)


def scatter(source: ir.Value, positions: Gather, shape: Sequence[int]) -> ir.Value:
    """Builds the op at the current insertion point.

    Args:
        source: the tensor whose elements are put.
        positions: its components, and the map from them to an index of the result.
        shape: of the result.
    """
    type_ = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(source.type).element_type)
    name = DEFINITION.full_name
    return ir.Operation.create(name, operands=[source], results=[type_], attributes=positions.attributes()).results[0]


def scatter_of(value: ir.Value) -> ir.Operation | None:
    """The `fuse.scatter` that makes a value; None for any other value."""
    maker = defining_op(value)
    return maker if maker is not None and maker.name == DEFINITION.full_name else None

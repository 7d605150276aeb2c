"""`fuse.scatter`: puts the elements of a tensor at the positions of another shape that an affine map gives.

```mlir
%dx = "fuse.scatter"(%classes) {basis = array<i64: 2, 2, 8, 28, 28, 64>, ranks = array<i64: 2, 3, 1>,
                                map = affine_map<(a, b, n, h, w, c) -> (n, 2 * h + a, 2 * w + b, c)>,
                                sources = array<i64>}
    : (tensor<4x6272x64xf16>) -> tensor<8x56x56x64xf16>
```

The counterpart of `fuse.gathered_view` for a result. Each dimension of the source is numbered by components, the last
one fastest: dimension i by the next `ranks[i]` entries of `basis`, whose product is the dimension's extent. The map
takes all components to an index of the result, where the source's element is put; elements whose index is outside of
the result are left out. The map reaches each position of the result exactly once: each of its expressions is a constant
plus components of its own, by factors that are those of a number with these components as digits.

There may be several sources of one shape. `sources`, whose product is their number, then has the extents of further
components, which come last in the map and number the sources: four, where only the first of four neighbouring pixels
has products, and the others have what the epilogue makes of zeros; or as many as there are parts of a joined array.

The op makes a result of a kernel on tensors. The kernel stores its tiles at these positions (`fuse.scattered`), so that
no array in the source's order exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.gathered_view import Gather, gather_of
from mlirfuse.support.affine_expressions import coefficients, substituted
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op
from mlirfuse.support.strides import row_major


def scatter_problem(
    scatter: Gather, shape: Sequence[int], sources: Sequence[int] = (), *, whole: bool = True
) -> str | None:
    """Why a map from components, and those that number sources, does not reach each position of a shape exactly once,
    or with `whole` not set at most once; or None.
    """
    extents, seen = (*scatter.components, *sources), set[int]()
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
            if factor < reach or (whole and factor > reach):
                return f"index {axis} of map {scatter.map} reaches positions twice, or not at all"
            reach = factor * extents[d]
        if whole and (start > 0 or start + reach < size):
            return f"index {axis} of map {scatter.map} leaves out positions below {size}"
    if missing := [d for d, extent in enumerate(extents) if extent > 1 and d not in seen]:
        return f"map {scatter.map} puts elements of component {missing[0]} at one position"
    return None


def verify_scattered(
    op: ir.Operation, source: ir.ShapedType, result: ir.ShapedType, sources: Sequence[int] = (), *, whole: bool = True
) -> str | None:
    """What is wrong with the attributes of an op whose `source`, in the order of components, is put in `result`; or
    several sources, numbered by further components. With `whole` they must fill the result.
    """
    flat, ranks = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("basis", "ranks"))
    if sum(ranks) != len(flat) or any(n < 1 for n in flat):
        return f"ranks {ranks} must partition the extents {flat}, which are positive"
    scatter = gather_of(op.attributes)
    if source.element_type != result.element_type or not source.has_static_shape or not result.has_static_shape:
        return f"{source} and {result} must have static shapes and one element type"
    if list(source.shape) != list(scatter.shape):
        return f"the source's shape must be {scatter.shape}, not {list(source.shape)}"
    count = len(flat) + len(sources)
    if scatter.map.n_dims != count or scatter.map.n_symbols or len(scatter.map.results) != result.rank:
        return f"map {scatter.map} must take {count} components to {result.rank} indices"
    return scatter_problem(scatter, list(result.shape), sources, whole=whole)


def _verify(op: ir.Operation) -> str | None:
    if any(use.owner.operation.name != "func.return" for use in op.results[0].uses):
        return "its result may only be returned"
    types, extents = {value.type for value in op.operands}, tuple(ir.DenseI64ArrayAttr(op.attributes["sources"]))
    if len(types) != 1 or prod(extents) != len(op.operands):
        return f"there must be {prod(extents)} sources of one type"
    source, result = ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type)
    return verify_scattered(op, source, result, extents)


DEFINITION = OpDefinition(
    "scatter",
    operands=(("sources", VARIADIC),),
    results=(("result", SINGLE),),
    attributes=("basis", "ranks", "map", "sources"),
    verify=_verify,
)


def scatter(values: Sequence[ir.Value], positions: Gather, extents: Sequence[int], shape: Sequence[int]) -> ir.Value:
    """Builds the op at the current insertion point.

    Args:
        values: the tensors whose elements are put.
        positions: their components, and the map from these, and those that number tensors, to an index of the result.
        extents: of the components that number the tensors.
        shape: of the result.
    """
    type_ = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(values[0].type).element_type)
    attributes = positions.attributes() | {"sources": ir.DenseI64ArrayAttr.get(list(extents))}
    name = DEFINITION.full_name
    return ir.Operation.create(name, operands=list(values), results=[type_], attributes=attributes).results[0]


def scatter_of(value: ir.Value) -> ir.Operation | None:
    """The `fuse.scatter` that makes a value; None for any other value."""
    maker = defining_op(value)
    return maker if maker is not None and maker.name == DEFINITION.full_name else None


def sources_of(op: ir.Operation) -> list[tuple[ir.Value, Gather]]:
    """The sources of a `fuse.scatter`, and where the elements of each are put."""
    extents = tuple(ir.DenseI64ArrayAttr(op.attributes["sources"]))
    return list(zip(op.operands, of_sources(gather_of(op.attributes), extents), strict=True))


def interleaved_step(op: ir.Operation) -> int | None:
    """How far apart neighbours of each source of a `fuse.scatter` are in rows of the result, where the elements of
    the other sources lie between them; None where that is not so.
    """
    count, shape = len(op.operands), ir.RankedTensorType(op.results[0].type).shape
    source = ir.RankedTensorType(op.operands[0].type).shape
    dims = [d for d, extent in enumerate(source) if extent != 1]
    if count < 2 or not dims:
        return None
    return count if {positions.strides_in(shape)[0][dims[-1]] for _, positions in sources_of(op)} == {count} else None


def bytes_in_order(op: ir.Operation) -> int | None:
    """The shortest runs, in bytes, of the sources of a `fuse.scatter` that lie in the result as they do in the source;
    None where neighbours of a source do not.
    """
    type_ = ir.RankedTensorType(op.results[0].type)
    runs = []
    for source, positions in sources_of(op):
        dim, run = positions.unit(type_.shape, row_major(type_.shape))
        if dim is None or any(extent != 1 for extent in ir.RankedTensorType(source.type).shape[dim + 1 :]):
            return None
        runs.append(run)
    return min(runs) * from_mlir(type_.element_type).bytes


def of_sources(positions: Gather, extents: Sequence[int]) -> list[Gather]:
    """The positions of each of several sources, which the last components of the map number."""
    own = len(positions.components)
    found = []
    for number in np.ndindex(*extents):
        dims = [ir.AffineExpr.get_dim(d) for d in range(own)] + [ir.AffineExpr.get_constant(n) for n in number]
        places = [substituted(expr, dims) for expr in positions.map.results]
        found.append(Gather(positions.basis, ir.AffineMap.get(own, 0, places)))
    return found

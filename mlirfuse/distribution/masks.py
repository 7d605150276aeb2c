"""The rule of masks: whether each element that a thread holds is below the mask's bounds."""

from __future__ import annotations

from functools import reduce

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, widen
from mlirfuse.distribution.threads.scalars import add, constant, less
from mlirfuse.support.rewriting import integer_of


@rule("vector.create_mask", "vector.constant_mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """Emits one comparison for each fragment and bounded dimension; along the vector dimension, one an element."""
    mask_type = ir.VectorType(op.results[0].type)
    tile = Fragments(d.layout, tuple(mask_type.shape), mask_type.element_type)
    bounds = _bounds(d, op)
    known: dict[Key, ir.Value] = {}

    def inside(dim: int, repeat: int) -> ir.Value:
        if (dim, repeat) not in known:
            index = d.threads.index(dim, repeat) if tile.varies(dim) else constant(0)
            if tile.width > 1 and dim == d.layout.vector_dim:
                each = [less(add(index, constant(e)), bounds[dim]) for e in range(tile.width)]
                known[dim, repeat] = vector.FromElementsOp(tile.type, each).result
            else:
                known[dim, repeat] = widen(less(index, bounds[dim]), tile.width)
        return known[dim, repeat]

    def make(key: Key) -> ir.Value:
        checks = [inside(dim, repeat) for dim, repeat in enumerate(key) if dim in bounds] or [_true(tile.width)]
        return reduce(lambda a, b: arith.AndIOp(a, b).result, checks)

    tile.make = make
    d.tiles[op.results[0]] = tile


def _bounds(d: Distributor, op: ir.Operation) -> dict[int, ir.Value]:
    """The bound of each dimension that the mask covers only in part."""
    shape = ir.VectorType(op.results[0].type).shape
    if op.name == "vector.constant_mask":  # create_mask with known bounds folds to constant_mask
        sizes = ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])
        return {dim: constant(size) for dim, size in enumerate(sizes) if size < shape[dim]}
    known = [integer_of(bound) for bound in op.operands]
    return {
        dim: d.scalars[bound]
        for dim, (bound, size) in enumerate(zip(op.operands, known, strict=True))
        if size is None or size < shape[dim]
    }


def _true(width: int) -> ir.Value:
    i1 = ir.IntegerType.get_signless(1)
    return widen(arith.ConstantOp(i1, ir.IntegerAttr.get(i1, 1)).result, width)

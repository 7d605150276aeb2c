"""The rule of masks: which of a thread's elements lie below the bounds."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.fragments import Fragments, Key
from mlirfuse.distribution.scalars import constant, less
from mlirfuse.errors import PassError


@rule("vector.create_mask", "vector.constant_mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """One comparison a fragment and a bounded dimension; a mask is not bounded along a thread's vectors."""
    mask_type = ir.VectorType(op.results[0].type)
    tile = Fragments(d.layout, tuple(mask_type.shape), mask_type.element_type)
    if tile.width > 1:
        raise PassError("a mask may not end inside of a thread's vector", where=str(op.location))
    if op.name == "vector.constant_mask":  # what create_mask is folded to where its bounds are known
        bounds = [constant(size) for size in ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])]
    else:
        bounds = [d.scalars[bound] for bound in op.operands]
    known: dict[Key, ir.Value] = {}

    def inside(dim: int, repeat: int) -> ir.Value:
        if (dim, repeat) not in known:
            index = d.threads.index(dim, repeat) if tile.varies(dim) else constant(0)
            known[dim, repeat] = less(index, bounds[dim])
        return known[dim, repeat]

    def make(key: Key) -> ir.Value:
        checks = [inside(dim, repeat) for dim, repeat in enumerate(key)]
        result = checks[0]
        for check in checks[1:]:
            result = arith.AndIOp(result, check).result
        return result

    tile.make = make
    d.tiles[op.results[0]] = tile

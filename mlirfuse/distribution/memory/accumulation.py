"""Rules for accumulators in global memory: `fuse.accumulate`, and the fill that clears the accumulators."""

from __future__ import annotations

from math import gcd, prod

from mlir import ir
from mlir.dialects import gpu, memref, scf, vector

from mlirfuse.dialect.accumulate import accumulate
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.memory.flagged_exchange import owns_fragment
from mlirfuse.distribution.memory.semaphores import tile_barrier
from mlirfuse.distribution.memory.transfers import layout_dims
from mlirfuse.distribution.threads.fragments import Key, elements, widen
from mlirfuse.distribution.threads.scalars import add, constant, multiply
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.memory import access_elements

FLOAT_BYTES = 4


@rule("fuse.accumulate")
def accumulate_tile(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.accumulate`: each element of the tile is added by exactly one thread."""
    value, sums, *indices = op.operands
    tile = d.fragments(value)
    dims = [n if n is not None and tile.varies(n) else None for n in layout_dims(tile, ir.VectorType(value.type))]
    starts = [d.scalars[index] for index in indices]
    lead = len(starts) - len(dims)
    axis = lead + dims.index(tile.layout.vector_dim) if tile.width > 1 else None
    contiguous = access_elements(ir.MemRefType(sums.type), axis, None, tile.width)

    def indices_of(key: Key) -> list[ir.Value]:
        inner = zip(starts[lead:], dims, strict=True)
        return [*starts[:lead], *(s if n is None else add(s, d.threads.index(n, key[n])) for s, n in inner)]

    for key in tile.keys():
        fragment, is_owner = tile.at(key), owns_fragment(d, tile, key)
        branch = scf.IfOp(is_owner) if is_owner is not None else None
        with ir.InsertionPoint(branch.then_block) if branch else ir.InsertionPoint.current:
            if axis is None or contiguous > 1:
                accumulate(fragment, d.scalars[sums], indices_of(key), alignment=FLOAT_BYTES * contiguous)
            else:
                for n, element in enumerate(elements(fragment)):
                    each = [add(i, constant(n)) if a == axis else i for a, i in enumerate(indices_of(key))]
                    accumulate(element, d.scalars[sums], each, alignment=FLOAT_BYTES)
            if branch:
                scf.YieldOp([])


@rule("linalg.fill")
def fill(d: Distributor, op: ir.Operation) -> None:
    """Fills a share of the buffer in each thread, after a barrier that orders the fill behind earlier reads."""
    number, buffer = (d.scalars[operand] for operand in op.operands)
    d.force_all()
    tile_barrier(d)
    type_ = ir.MemRefType(buffer.type)
    flat = buffer
    if type_.rank > 1:
        line = ir.MemRefType.get([prod(type_.shape)], type_.element_type)
        flat = memref.CollapseShapeOp(line, buffer, [list(range(type_.rank))]).result
    size, bytes_ = prod(type_.shape), from_mlir(type_.element_type).bytes
    width = gcd(size, WIDEST_ACCESS // bytes_)
    value = widen(number, width)
    thread = gpu.ThreadIdOp(gpu.Dimension.x).result
    if d.layout.cluster > 1:
        rank = gpu.ClusterBlockIdOp(gpu.Dimension.x).result
        thread = add(thread, multiply(rank, d.layout.threads))
    step = width * d.layout.threads * d.layout.cluster
    loop = scf.ForOp(multiply(thread, width), constant(size), constant(step))
    with ir.InsertionPoint(loop.body):
        if width == 1:
            memref.StoreOp(value, flat, [loop.induction_variable])
        else:
            vector.StoreOp(value, flat, [loop.induction_variable], alignment=width * bytes_)
        scf.YieldOp([])

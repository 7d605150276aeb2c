"""The rule of `fuse.spill_to_shared`: keeps some fragments of a tile in shared memory, in slots private to a thread."""

from __future__ import annotations

from functools import cache

from mlir import ir
from mlir.dialects import gpu, memref, vector

from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Key
from mlirfuse.distribution.threads.ordered_accesses import keep_in_order
from mlirfuse.distribution.threads.scalars import add, constant, multiply, opaque_index
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.model.registers import AHEAD
from mlirfuse.support.dtypes import from_mlir


@rule("fuse.spill_to_shared")
def spill_to_shared(d: Distributor, op: ir.Operation) -> None:
    """Writes the first `fragments` fragments to shared memory when they are made; later uses read them back.

    Fragments without an earlier use are materialised lazily, at their first use.
    """
    source = d.fragments(op.operands[0])
    every = list(source.keys())
    shared_spill = every[: ir.IntegerAttr(op.attributes["fragments"]).value]
    awaited = every if d.in_order else shared_spill
    number = {key: n for n, key in enumerate(shared_spill)}
    threads, width = d.layout.threads, source.width
    alignment = min(WIDEST_ACCESS, width * from_mlir(source.element_type).bytes)
    own = multiply(gpu.ThreadIdOp(gpu.Dimension.x).result, width)
    reads: dict[ir.Value, list[ir.Value]] = {}
    stored: set[Key] = set()
    if all(use.owner.operation.name == "fuse.optimization_barrier" for use in op.results[0].uses):
        d.delayed_reads = [tile for tile in d.delayed_reads if tile is not source]  # read at a barrier only

    @cache
    def buffer() -> ir.Value:
        return d.scratch(len(shared_spill) * threads * width, source.element_type)

    def slot(base: ir.Value, key: Key) -> ir.Value:
        # Fragments of neighbouring threads are contiguous, so that no two lanes of an access share a bank.
        return add(base, constant(number[key] * threads * width))

    def make(key: Key) -> ir.Value:
        value = source.at(key)
        if key in number:
            stored.add(key)
            for ahead in awaited[number[key] + 1 : number[key] + 1 + AHEAD]:
                d.start_reads(ahead)
            if isinstance(value.type, ir.VectorType):
                store = vector.StoreOp(value, buffer(), [slot(own, key)], alignment=alignment)
                if d.in_order:
                    keep_in_order(store)
            else:
                memref.StoreOp(value, buffer(), [slot(own, key)])
        return value

    def read(key: Key, after: ir.Value) -> ir.Value:
        index = slot(opaque_index(own, after), key)
        if width > 1:
            return vector.LoadOp(result.type, buffer(), [index], alignment=alignment).result
        return memref.LoadOp(buffer(), [index]).result

    def rematerialize(key: Key, after: ir.Value) -> ir.Value:
        if key not in number:
            return optimization_barrier(result.at(key), after)
        if key not in stored:
            return optimization_barrier(source.at(key), after)
        # Nothing is read before `after` is known, so that no register holds a fragment across the spill, nor before an
        # earlier fragment is loaded, so that few reads are in flight at once.
        earlier = reads.setdefault(after, [])
        earlier.append(read(key, after if len(earlier) < AHEAD else earlier[-AHEAD]))
        return earlier[-1]

    result = source.like(source.extents, source.element_type, make)
    result.rematerialize = rematerialize
    d.tiles[op.results[0]] = result

"""The rule of `fuse.thread_reduce`: each thread combines its own elements with its accumulators."""

from __future__ import annotations

from mlir import ir

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.reduce.reductions import combiner, combining_op
from mlirfuse.distribution.threads.fragments import Fragments, Uniform, elements, splat
from mlirfuse.errors import PassError


@rule("fuse.thread_reduce")
def thread_reduce(d: Distributor, op: ir.Operation) -> None:
    """Combines in the order of keys, of which those along `dims` vary slowest: neighbouring instructions are those of
    different accumulators, and do not wait for one another.

    Raises:
        PassError: the elements of a thread are not those that the op says, or the result has another layout.
    """
    source, initial = d.tiles[op.operands[0]], d.tile(op.operands[1])
    result_type = ir.VectorType(op.results[0].type)
    if isinstance(source, Uniform):
        source = splat(d.layout, tuple(ir.VectorType(op.operands[0].type).shape), source.value)
    if isinstance(initial, Uniform):
        initial = splat(d.layout, tuple(result_type.shape), initial.value)
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    neighbours = tuple(ir.DenseI64ArrayAttr(op.attributes["neighbours"]))
    layout = source.layout
    if layout.of_threads(dims) != d.layout or neighbours != tuple(layout.step(dim) for dim in dims):
        raise PassError(
            f"{list(neighbours)} neighbours are not those of one thread along the dimensions {list(dims)} of {layout}",
            where=op,
            hint="fuse-assign-layouts puts the layout with one element for each thread on the op",
        )
    if any(layout.fragments(n) != d.layout.fragments(n) for n in range(layout.rank) if n not in dims):
        raise PassError("the result has other fragments than the source", where=op)
    combine = combiner(combining_op(op.attributes["kind"], source.element_type))
    inner = layout.vector_dim
    result = Fragments(d.layout, tuple(result_type.shape), source.element_type)
    for key in sorted(source.keys(), key=lambda key: [key[dim] for dim in dims]):
        kept = tuple(0 if dim in dims else n for dim, n in enumerate(key))
        for element in elements(source.at(key)) if inner in dims else [source.at(key)]:
            before = result.values[kept] if kept in result.values else initial.at(kept)
            result.values[kept] = combine(before, element)
    d.tiles[op.results[0]] = result

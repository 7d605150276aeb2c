"""`fuse.thread_reduce`: combines what each thread holds of a tile, and leaves one element for each thread.

```mlir
%1 = "fuse.thread_reduce"(%0, %sums) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>}
    : (vector<8x64xf32>, vector<8x8xf32>) -> vector<8x8xf32>
```

Along each of `dims`, the source's elements belong to as many threads as the result has elements: `neighbours` elements
side by side to the first thread, as many to the next one, and so on, and again from the first one. The result is the
second operand, with which a thread's elements are combined in order. A loop so carries one accumulator for each thread,
where lanes and elements of one thread lie along the same dimension, in place of one for each element of a tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, start, result = (ir.VectorType(value.type) for value in (*op.operands, *op.results))
    if start != result or source.element_type != result.element_type or source.rank != result.rank:
        return f"{start} must be the type of the result, of the rank and the elements of {source}"
    dims, neighbours = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("dims", "neighbours"))
    if len(dims) != len(neighbours) or not all(0 <= d < source.rank for d in dims) or len(set(dims)) < len(dims):
        return f"neighbours {neighbours} must be one number for each of the dimensions {dims} of {source}"
    for d, (whole, threads) in enumerate(zip(source.shape, result.shape, strict=True)):
        each = dict(zip(dims, neighbours, strict=True)).get(d)
        if each is None and whole != threads:
            return f"dimension {d} is none of {dims}, and has {whole} elements in the source, {threads} in the result"
        if each is not None and (each < 1 or whole % (each * threads)):
            return f"{each} neighbours of {threads} threads do not divide {whole} elements in dimension {d}"
    return None


DEFINITION = OpDefinition(
    "thread_reduce",
    operands=(("source", SINGLE), ("initial", SINGLE)),
    results=(("result", SINGLE),),
    attributes=("dims", "kind", "neighbours"),
    verify=_verify,
    needs_layout=True,
)


def thread_reduce(
    source: ir.Value, initial: ir.Value, dims: Sequence[int], neighbours: Sequence[int], kind: ir.Attribute
) -> ir.Value:
    """Builds the op at the current insertion point."""
    attributes = {
        "dims": ir.DenseI64ArrayAttr.get(list(dims)),
        "kind": kind,
        "neighbours": ir.DenseI64ArrayAttr.get(list(neighbours)),
    }
    return ir.Operation.create(
        DEFINITION.full_name, results=[initial.type], operands=[source, initial], attributes=attributes
    ).results[0]

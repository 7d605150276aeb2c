"""`fuse.accumulate`: adds a tile to accumulators in global memory that several blocks share, in any order.

```mlir
"fuse.accumulate"(%partial, %sums, %c0, %c0) : (vector<4096xf32>, memref<1x4096xf32>, index, index) -> ()
```

Adds each element of the vector to the accumulator at the indices; the vector's dimensions are the last ones of the
buffer. Each addition is atomic at device scope and unordered, even within one op, so the last bits of a sum differ from
run to run; the device flushes subnormal numbers to zero. The op neither acquires nor releases: blocks that read the
sums must synchronise with those that add (`fuse.semaphore_arrive`).

The accumulators are initialised memory. As a workspace argument of the kind `semaphores` they are zero when a kernel
starts, and the kernel must leave them zero.

In a tile program the block adds a tile. In a `gpu.func` each thread adds a fragment of `vector<Nxf32>` or `f32`, whose
first element is aligned to the bytes given by the optional attribute `alignment`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition

ALIGNMENT = "alignment"


def _verify(op: ir.Operation) -> str | None:
    value, sums, *indices = (operand.type for operand in op.operands)
    if not isinstance(sums, ir.MemRefType) or sums.memory_space is not None or str(sums.element_type) != "f32":
        return f"sums {sums} must be a memref of f32 in global memory"
    element, rank = (value.element_type, value.rank) if isinstance(value, ir.VectorType) else (value, 0)
    if str(element) != "f32" or rank > sums.rank:
        return f"{value} cannot be added to {sums}"
    return None if len(indices) == sums.rank else f"sums {sums} need {sums.rank} indices, not {len(indices)}"


DEFINITION = OpDefinition(
    "accumulate",
    operands=(("value", SINGLE), ("sums", SINGLE), ("indices", VARIADIC)),
    verify=_verify,
    needs_layout=True,
)


def accumulate(value: ir.Value, sums: ir.Value, indices: Sequence[ir.Value], *, alignment: int | None = None) -> None:
    """Builds the op at the current insertion point; the first element is aligned to `alignment` bytes."""
    i64 = ir.IntegerType.get_signless(64)
    attributes = {} if alignment is None else {ALIGNMENT: ir.IntegerAttr.get(i64, alignment)}
    ir.Operation.create(DEFINITION.full_name, operands=[value, sums, *indices], attributes=attributes)

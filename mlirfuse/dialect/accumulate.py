"""`fuse.accumulate`: adds numbers to sums that other blocks add to as well, in whatever order they come.

```mlir
"fuse.accumulate"(%part, %sums, %c0, %c0) : (vector<4096xf32>, memref<1x4096xf32>, index, index) -> ()
```

Adds the elements of a vector, which lie along the last dimensions of global memory from the indices on, to what is
there. Each element is one atomic addition at device scope; nothing orders them, not even those of one op, so that the
last bits of a sum differ from run to run. The device takes subnormal numbers for zeros here. The op acquires and
releases nothing: who reads the sums must have met those who add (`fuse.semaphore_arrive`).

The sums are initialised memory; as a workspace argument of the kind `semaphores` they are zero when a kernel starts,
and it must leave them zero.

In a tile program the block adds a tile, in a `gpu.func` each thread adds a fragment of `vector<Nxf32>` or `f32`, whose
first element is aligned to as many bytes as the optional attribute `alignment` says.
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
)


def accumulate(value: ir.Value, sums: ir.Value, indices: Sequence[ir.Value], *, alignment: int | None = None) -> None:
    """Builds the op at the current insertion point; the first element is aligned to `alignment` bytes."""
    i64 = ir.IntegerType.get_signless(64)
    attributes = {} if alignment is None else {ALIGNMENT: ir.IntegerAttr.get(i64, alignment)}
    ir.Operation.create(DEFINITION.full_name, operands=[value, sums, *indices], attributes=attributes)

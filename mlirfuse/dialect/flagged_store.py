"""`fuse.flagged_store`: stores partials for another block in a flagged buffer, in which each word is its own flag.

```mlir
"fuse.flagged_store"(%partial, %buf, %row, %c0, %c0)
    : (vector<64x64xf32>, memref<33x64x64xf32>, index, index, index) -> ()
```

A flagged buffer is global memory whose words are zero while they are empty: a workspace argument of the kind
`semaphores`. The op writes the elements of a vector from the indices on; the vector's dimensions are the buffer's last
ones. The words must be empty. Each word becomes visible separately, at any time after the op, and a word that is not
empty has arrived: there is no fence, no counter, and no order among words. The block's other writes are not released.
Each stored word must be loaded by one `fuse.flagged_load`, which empties the word.

In a tile program the block stores a tile; in a `gpu.func` each thread stores a fragment of `vector<Nxf32>` or `f32`.
NCCL's LL protocol is the nearest relative.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition


def flagged_problem(flagged_buffer: ir.Type, value: ir.Type) -> str | None:
    """Why values of a type cannot be stored in a flagged buffer, or None."""
    if (
        not isinstance(flagged_buffer, ir.MemRefType)
        or flagged_buffer.memory_space is not None
        or str(flagged_buffer.element_type) != "f32"
    ):
        return f"flagged buffer {flagged_buffer} must be a memref of f32 in global memory"
    element, rank = (value.element_type, value.rank) if isinstance(value, ir.VectorType) else (value, 0)
    if str(element) != "f32" or rank > flagged_buffer.rank:
        return f"{value} does not fit flagged buffer {flagged_buffer}"
    return None


def _verify(op: ir.Operation) -> str | None:
    value, flagged_buffer, *indices = op.operands
    if problem := flagged_problem(flagged_buffer.type, value.type):
        return problem
    rank = ir.MemRefType(flagged_buffer.type).rank
    return (
        None
        if len(indices) == rank
        else f"flagged buffer {flagged_buffer.type} needs {rank} indices, not {len(indices)}"
    )


DEFINITION = OpDefinition(
    "flagged_store",
    operands=(("value", SINGLE), ("flagged_buffer", SINGLE), ("indices", VARIADIC)),
    verify=_verify,
    needs_layout=True,
)


def flagged_store(value: ir.Value, flagged_buffer: ir.Value, indices: Sequence[ir.Value]) -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(DEFINITION.full_name, operands=[value, flagged_buffer, *indices])

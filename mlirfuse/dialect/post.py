"""`fuse.post`: leaves numbers for another block in a mailbox, where each of them announces itself.

```mlir
"fuse.post"(%part, %mail, %row, %c0, %c0) : (vector<64x64xf32>, memref<33x64x64xf32>, index, index, index) -> ()
```

A mailbox is global memory of words that are zero while they are empty: a workspace argument of the kind `semaphores`.
The op writes the elements of a vector, which lie along the mailbox's last dimensions from the indices on, into words
that are empty. A word becomes visible by itself, at any time after the op, and says with it that it has come: there is
no fence, no counter, and no order among words. What the block wrote elsewhere is not released. Every word that is
posted must be taken by one `fuse.collect`, which leaves it empty.

In a tile program the block posts a tile, in a `gpu.func` each thread posts a fragment of `vector<Nxf32>` or `f32`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition


def mailbox_problem(mail: ir.Type, value: ir.Type) -> str | None:
    """What keeps values of a type out of a mailbox, or None."""
    if not isinstance(mail, ir.MemRefType) or mail.memory_space is not None or str(mail.element_type) != "f32":
        return f"mailbox {mail} must be a memref of f32 in global memory"
    element, rank = (value.element_type, value.rank) if isinstance(value, ir.VectorType) else (value, 0)
    if str(element) != "f32" or rank > mail.rank:
        return f"{value} does not fit mailbox {mail}"
    return None


def _verify(op: ir.Operation) -> str | None:
    value, mail, *indices = op.operands
    if problem := mailbox_problem(mail.type, value.type):
        return problem
    rank = ir.MemRefType(mail.type).rank
    return None if len(indices) == rank else f"mailbox {mail.type} needs {rank} indices, not {len(indices)}"


DEFINITION = OpDefinition(
    "post",
    operands=(("value", SINGLE), ("mail", SINGLE), ("indices", VARIADIC)),
    verify=_verify,
)


def post(value: ir.Value, mail: ir.Value, indices: Sequence[ir.Value]) -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(DEFINITION.full_name, operands=[value, mail, *indices])

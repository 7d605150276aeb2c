"""`fuse.scattered`: a view of a buffer to which a kernel stores elements at positions that an affine map gives.

```mlir
%view = "fuse.scattered"(%dx) {basis = array<i64: 2, 2, 8, 28, 28, 64>, ranks = array<i64: 2, 3, 1>,
                               map = affine_map<(a, b, n, h, w, c) -> (n, 2 * h + a, 2 * w + b, c)>}
    : (memref<8x56x56x64xf16>) -> memref<4x6272x64xf16, strided<[64, 64, 1]>>
```

The buffer's form of `fuse.scatter`, for one of its sources, which has the meaning of the attributes. An element that is
stored to the view is stored at the buffer's index of it, and nothing is stored where that index is outside of the
buffer. Nothing may be loaded from the view. The view's strides are no addresses: they only say how fragments are
aligned, and an access of several elements is inside the buffer as a whole, or outside. Stores compute the addresses
(`fuse-resolve-scatters`).
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.gathered_view import Gather, promised_strides
from mlirfuse.dialect.scatter import verify_scattered
from mlirfuse.support.strides import row_major


def _verify(op: ir.Operation) -> str | None:
    view, buffer = ir.MemRefType(op.results[0].type), ir.MemRefType(op.operands[0].type)
    return verify_scattered(op, view, buffer, whole=False)


DEFINITION = OpDefinition(
    "scattered",
    operands=(("buffer", SINGLE),),
    results=(("view", SINGLE),),
    attributes=("basis", "ranks", "map"),
    verify=_verify,
)


def scattered(buffer: ir.Value, positions: Gather) -> ir.Value:
    """Builds the op for a C-contiguous buffer at the current insertion point."""
    type_ = ir.MemRefType(buffer.type)
    strides = promised_strides(positions, type_.shape, row_major(type_.shape))
    view = ir.MemRefType.get(list(positions.shape), type_.element_type, ir.StridedLayoutAttr.get(0, strides))
    name = DEFINITION.full_name
    return ir.Operation.create(name, operands=[buffer], results=[view], attributes=positions.attributes()).results[0]

"""`fuse.mma`: a warp multiplies a 16x16 by a 16x8 matrix on the tensor cores.

```mlir
%d = "fuse.mma"(%a, %b, %c) : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
```

`d = a @ b + c`. Lane l, with g = l / 4 and t = l % 4, holds of a (rows by k): (g, 2t), (g, 2t+1), (g+8, 2t),
(g+8, 2t+1) and the same with 8 added to k; of b (k by columns): (2t, g), (2t+1, g) and the same with 8 added to k; of c
and d (rows by columns): (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1). These are the fragments of m16n8k16 in the PTX ISA,
"Matrix Fragments for mma.m16n8k16 with floating point type". All lanes of a warp execute it together.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition

ELEMENTS = ("f16", "bf16")


def _verify(op: ir.Operation) -> str | None:
    element = ir.VectorType(op.operands[0].type).element_type
    wanted = [f"vector<8x{element}>", f"vector<4x{element}>", "vector<4xf32>", "vector<4xf32>"]
    found = [str(v.type) for v in (*op.operands, *op.results)]
    if str(element) not in ELEMENTS or found != wanted:
        return f"types {', '.join(found)} must be vector<8xT>, vector<4xT>, vector<4xf32>, vector<4xf32> of f16 or bf16"
    return None


DEFINITION = OpDefinition(
    "mma", operands=(("a", SINGLE), ("b", SINGLE), ("c", SINGLE)), results=(("d", SINGLE),), verify=_verify
)


def mma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[c.type], operands=[a, b, c]).results[0]

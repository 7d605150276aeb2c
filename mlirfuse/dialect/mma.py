"""`fuse.mma`: a warp multiplies a 16xk by a kx8 matrix on the tensor cores; k is 16, 8 for tf32, or 32 for int8.

```mlir
%d = "fuse.mma"(%a, %b, %c) : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
```

`d = a @ b + c`. All lanes of a warp execute the op together. Lane l, with g = l / 4 and t = l % 4, holds these
elements: of a (rows by k): (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) and the same with 8 added to k; of b (k by
columns): (2t, g), (2t+1, g) and the same with 8 added to k; of c and d (rows by columns): (g, 2t), (g, 2t+1), (g+8,
2t), (g+8, 2t+1). In tf32, lane l holds of a: (g, t), (g+8, t) and the same with 4 added to k; of b: (t, g), (t+4, g).
In int8, lane l holds of a: (g, 4t) to (g, 4t+3), (g+8, 4t) to (g+8, 4t+3) and the same with 16 added to k; of b:
(4t, g) to (4t+3, g) and the same with 16 added to k; c and d are in int32, which wraps around. These are the fragments
of m16n8k16, m16n8k8 and m16n8k32 in the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and on.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition

DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "i8": 32}
"""Elements along k, by type."""


def _verify(op: ir.Operation) -> str | None:
    element = ir.VectorType(op.operands[0].type).element_type
    depth = DEPTHS.get(str(element), 0)
    sums = "vector<4xi32>" if str(element) == "i8" else "vector<4xf32>"
    wanted = [f"vector<{depth // 2}x{element}>", f"vector<{depth // 4}x{element}>", sums, sums]
    found = [str(v.type) for v in (*op.operands, *op.results)]
    if found != wanted:
        return (
            f"types {', '.join(found)} must be vector<8xT>, vector<4xT>, vector<4xf32>, vector<4xf32> of f16 or bf16, "
            "or vector<4xtf32>, vector<2xtf32>, vector<4xf32>, vector<4xf32>, or vector<16xi8>, vector<8xi8>, "
            "vector<4xi32>, vector<4xi32>"
        )
    return None


DEFINITION = OpDefinition(
    "mma", operands=(("a", SINGLE), ("b", SINGLE), ("c", SINGLE)), results=(("d", SINGLE),), verify=_verify
)


def mma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[c.type], operands=[a, b, c]).results[0]

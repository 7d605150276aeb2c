"""`fuse.exp_sum`: maximum and sum of exponentials about it over some dimensions, in one reduction.

```mlir
%max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<?x4096xf32>) -> (tensor<?xf32>, tensor<?xf32>)
```

`max = max x` and `sum = Σ exp(x - max)`, with NaN and infinity as those two reductions would give them. Written as two
dependent reductions they need two exchanges; this op states that one is enough, because partial pairs
merge by rescaling: `sum = Σ sum_i exp(max_i - max)` (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018). On tensors the reduced dimensions disappear from the results; on tile vectors likewise, but that a tile
reduced to one number is a `vector<1x...>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.joint import verify_joint_reduction


def _verify(op: ir.Operation) -> str | None:
    element = ir.ShapedType(op.operands[0].type).element_type
    if not isinstance(element, (ir.F32Type, ir.F64Type)):
        return f"elements must be f32 or f64, not {element}: partial sums are rescaled"
    return verify_joint_reduction(op)


DEFINITION = OpDefinition(
    "exp_sum",
    operands=(("source", SINGLE),),
    results=(("max", SINGLE), ("sum", SINGLE)),
    attributes=("dims",),
    verify=_verify,
)


def exp_sum(source: ir.Value, dims: Sequence[int], result_type: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Builds the op at the current insertion point; returns (max, sum), both of `result_type`."""
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[result_type, result_type],
        operands=[source],
        attributes={"dims": ir.DenseI64ArrayAttr.get(list(dims))},
    )
    return op.results[0], op.results[1]

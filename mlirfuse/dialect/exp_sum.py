"""`fuse.exp_sum`: the maximum, and the sum of exponentials about the maximum, in one reduction.

```mlir
%max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<?x4096xf32>) -> (tensor<?xf32>, tensor<?xf32>)
```

`max = max x` and `sum = Σ exp(x - max)` over the dimensions `dims`, with NaN and infinity as two separate reductions
would give them. Two dependent reductions need two exchanges between threads; this op needs one, because partial results
merge by rescaling: `sum = Σ sum_i exp(max_i - max)` (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018). Results lack the reduced dimensions; a tile vector reduced to one number is a `vector<1x...>`.
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
    needs_layout=True,
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

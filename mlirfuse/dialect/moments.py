"""`fuse.moments`: the sum and the centred sum of squares, in one reduction.

```mlir
%sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<?x4096xf32>) -> (tensor<?xf32>, tensor<?xf32>)
```

`sum = Σ x` and `m2 = Σ (x - sum/n)²` over the dimensions `dims`, where n is the number of elements reduced into one
result. Mean and variance as two dependent reductions need two exchanges between threads; this op needs one, because
partial results merge exactly (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979). Results lack the reduced dimensions; a tile vector reduced to one number is a `vector<1x...>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.joint import verify_joint_reduction

DEFINITION = OpDefinition(
    "moments",
    operands=(("source", SINGLE),),
    results=(("sum", SINGLE), ("m2", SINGLE)),
    attributes=("dims",),
    verify=verify_joint_reduction,
    needs_layout=True,
)


def moments(source: ir.Value, dims: Sequence[int], result_type: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Builds the op at the current insertion point; returns (sum, m2), both of `result_type`."""
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[result_type, result_type],
        operands=[source],
        attributes={"dims": ir.DenseI64ArrayAttr.get(list(dims))},
    )
    return op.results[0], op.results[1]

"""`fuse.optimization_barrier`: hides a value from optimisations, and delays the value's uses.

```mlir
%1 = "fuse.optimization_barrier"(%0, %sum) : (vector<1x4096xf16>, vector<1x1xf32>) -> vector<1x4096xf16>
```

The result is the first operand, but no optimisation looks through the op, and no use of the result is computed before
the second operand, `after`, is known. It keeps a value that is live across a reduction narrow: without it, the cast
after the reduction is merged with the same cast before, and the wide value stays in registers. `after` has the rank of
the iteration space, with extent 1 where it does not vary.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    return None if source == result else f"result type {result} must be the source's, {source}"


DEFINITION = OpDefinition(
    "optimization_barrier",
    operands=(("source", SINGLE), ("after", SINGLE)),
    results=(("result", SINGLE),),
    verify=_verify,
)


def optimization_barrier(value: ir.Value, after: ir.Value) -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[value.type], operands=[value, after]).results[0]

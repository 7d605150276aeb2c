"""`fuse.pin`: keeps a value in the form it has here.

```mlir
%1 = "fuse.pin"(%0) : (vector<1x4096xf16>) -> vector<1x4096xf16>
```

The result is the operand, but no optimisation looks through it. A value that lives across a reduction is kept narrow
that way: without it, LLVM merges the cast after the reduction with the same cast before it, and the wide value stays
in registers. It becomes an empty inline-assembly constraint, as in CUDA's `asm volatile("" : "+r"(x))`.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    return None if source == result else f"result type {result} must be the operand's, {source}"


DEFINITION = OpDefinition("pin", operands=(("source", SINGLE),), results=(("result", SINGLE),), verify=_verify)


def pin(value: ir.Value) -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[value.type], operands=[value]).results[0]

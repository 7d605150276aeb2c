"""`fuse.spill_to_shared`: keeps some fragments of a tile in shared memory between uses.

```mlir
%1 = "fuse.spill_to_shared"(%0) {fragments = 8 : i64} : (vector<1x131072xf16>) -> vector<1x131072xf16>
```

The result is the operand. The first `fragments` of each thread's fragments are written to shared memory when they are
made, and a `fuse.optimization_barrier` of the result reads them back; the other fragments stay in registers. A thread
reads only its own writes, so no barrier is needed. The op lets a block hold rows that do not fit its registers.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    if source != result:
        return f"result type {result} must be the source's, {source}"
    if ir.IntegerAttr(op.attributes["fragments"]).value < 1:
        return "fragments must be at least 1"
    return None


DEFINITION = OpDefinition(
    "spill_to_shared",
    operands=(("source", SINGLE),),
    results=(("result", SINGLE),),
    attributes=("fragments",),
    verify=_verify,
)


def spill_to_shared(value: ir.Value, fragments: int) -> ir.Value:
    """Builds the op at the current insertion point."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), fragments)
    return ir.Operation.create(
        DEFINITION.full_name, results=[value.type], operands=[value], attributes={"fragments": count}
    ).results[0]

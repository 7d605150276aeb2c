"""`fuse.spill_to_shared`: some fragments of a tile wait in shared memory until they are needed again.

```mlir
%1 = "fuse.spill_to_shared"(%0) {fragments = 8 : i64} : (vector<1x131072xf16>) -> vector<1x131072xf16>
```

The result is the operand. Of the fragments that a thread holds of it, the first `fragments` are written to shared
memory when they are made, and a `fuse.optimization_barrier` of the result reads them back, where it would take the
others from registers. A thread reads only what it wrote, so that no barrier is needed. A block thus holds rows that its
registers alone have no room for.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    if source != result:
        return f"result type {result} must be the source's, {source}"
    if ir.IntegerAttr(op.attributes["fragments"]).value < 1:
        return "at least one fragment must be spilled"
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

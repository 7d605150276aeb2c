"""`fuse.async_store_wait`: waits until stages may be written again.

```mlir
"fuse.async_store_wait"() {pending = 1 : i64} : () -> ()
```

Afterwards all but the last `pending` `fuse.async_store`s of the thread have read their stages. The thread that issued
the stores executes the op; other threads may write a stage after the next barrier. A block may not end before its
stores have read their stages.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition


def _verify(op: ir.Operation) -> str | None:
    pending = ir.IntegerAttr(op.attributes["pending"]).value
    return None if pending >= 0 else f"pending = {pending} must be at least 0"


DEFINITION = OpDefinition("async_store_wait", attributes=("pending",), verify=_verify)


def async_store_wait(pending: int) -> None:
    """Builds the op at the current insertion point."""
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), pending)
    ir.Operation.create(DEFINITION.full_name, attributes={"pending": attribute})

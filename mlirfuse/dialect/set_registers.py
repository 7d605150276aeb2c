"""`fuse.set_registers`: changes the number of registers of a warpgroup's threads.

```mlir
"fuse.set_registers"() {count = 40 : i64, action = "decrease"} : () -> ()
```

Afterwards each thread of the warpgroup has `count` registers, a multiple of 8 from 24 to 240. An increase waits until
other warpgroups of the block have released enough. All threads of the warpgroup execute the op together; it changes no
value.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition

ACTIONS = ("increase", "decrease")


def _verify(op: ir.Operation) -> str | None:
    count, action = ir.IntegerAttr(op.attributes["count"]).value, ir.StringAttr(op.attributes["action"]).value
    if count % 8 or not 24 <= count <= 240:
        return f"count = {count} must be a multiple of 8 from 24 to 240"
    return None if action in ACTIONS else f"action {action!r} must be one of {list(ACTIONS)}"


DEFINITION = OpDefinition("set_registers", attributes=("count", "action"), verify=_verify)


def set_registers(count: int, action: str) -> None:
    """Builds the op at the current insertion point."""
    attributes = {
        "count": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count),
        "action": ir.StringAttr.get(action),
    }
    ir.Operation.create(DEFINITION.full_name, attributes=attributes)

"""The mark of accesses that must stay where the program has them.

Where registers are short, ptxas still moves loads up and stores down until none is left, and then spills (addresses, or
what it has just loaded). Marked accesses become relaxed ones (`lower-ordered-accesses`), which it leaves in order.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import IN_ORDER


def keep_in_order(op: ir.OpView) -> ir.OpView:
    """Marks an access; returns it."""
    op.operation.attributes[IN_ORDER] = ir.UnitAttr.get()
    return op

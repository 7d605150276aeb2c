"""The mark of accesses that keep their place in program order.

Where registers are scarce, ptxas still hoists loads and sinks stores until it spills. `lower-ordered-accesses` turns
marked accesses into relaxed atomic ones, which ptxas does not reorder.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import IN_ORDER


def keep_in_order(op: ir.OpView) -> ir.OpView:
    """Marks an access; returns it."""
    op.operation.attributes[IN_ORDER] = ir.UnitAttr.get()
    return op

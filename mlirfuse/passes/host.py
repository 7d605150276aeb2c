"""The host function's side of passes that make kernels: its calls, and the order of its ops."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.kernels import body
from mlirfuse.rewriting import defining_op


def calls(function: ir.Operation) -> list[ir.Operation]:
    """The calls of a host function, in order."""
    return [op for op in body(function) if op.name == "func.call"]


def callee(call: ir.Operation) -> str:
    """The symbol that a call names."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def depends_on(value: ir.Value, op: ir.Operation) -> bool:
    """Whether a value of a host function is computed from results of `op`."""
    owner = defining_op(value)
    return owner is not None and (owner == op or any(depends_on(operand, op) for operand in owner.operands))


def order_host_ops(function: ir.Operation) -> None:
    """Moves what the host does behind what it needs: a call sits before its first use, which may be an early view."""
    *ops, terminator = body(function)
    pending = dict.fromkeys(ops)

    def place(op: ir.Operation) -> None:
        del pending[op]
        for value in op.operands:
            owner = defining_op(value)
            if owner in pending:
                place(owner)
        op.move_before(terminator)

    while pending:
        place(next(iter(pending)))

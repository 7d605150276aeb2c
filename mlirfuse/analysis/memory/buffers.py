"""The origin of memrefs through views, and their uses."""

from __future__ import annotations

from mlir import ir

from mlirfuse.support.rewriting import defining_op

VIEWS = (
    "memref.cast",
    "memref.subview",
    "memref.reinterpret_cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.transpose",
)
"""Ops whose result is a view of their first operand, or of a part of it."""


READS = ("vector.load", "memref.load", "vector.maskedload", "memref.dim")


def root(buffer: ir.Value) -> ir.Value:
    """The buffer that a chain of views starts from."""
    while (view := defining_op(buffer)) is not None and view.name in VIEWS:
        buffer = view.operands[0]
    return buffer


def is_only_read(buffer: ir.Value) -> bool:
    """Whether loads are the only accesses to a buffer and its views."""
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            if not is_only_read(user.results[0]):
                return False
        elif user.name not in READS:
            return False
    return True


def is_nontemporal(access: ir.Operation) -> bool:
    """Whether a load or store is marked as the only access to its data."""
    return "nontemporal" in access.attributes and ir.BoolAttr(access.attributes["nontemporal"]).value

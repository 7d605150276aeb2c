"""MLIR contexts with the fuse dialect loaded."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect import load


def make_context() -> ir.Context:
    """A new MLIR context that knows every upstream dialect and the `fuse` dialect.

    Contexts are not shared between compilations: an MLIR context is not freed piecemeal, and two threads may
    compile at once.
    """
    context = ir.Context()
    load(context)
    return context

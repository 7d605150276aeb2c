"""MLIR contexts with the fuse dialect, and the dialects that mlirfuse builds IR of, loaded."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect import load

BUILT = (
    *("affine", "arith", "func", "gpu", "irdl", "linalg", "llvm", "math", "memref", "nvgpu", "nvvm", "scf", "tensor"),
    *("ub", "vector"),
)
"""Upstream dialects that are loaded from the start; loading all is slower."""


def make_context() -> ir.Context:
    """A new MLIR context with every upstream dialect and the `fuse` dialect registered.

    Dialects that are not in `BUILT` are loaded on demand, by the parser and by passes that need them. Contexts are not
    shared between compilations: an MLIR context is not freed piecemeal, and two threads may compile at once.
    """
    context = ir.Context(load_on_create_dialects=BUILT)
    load(context)
    return context

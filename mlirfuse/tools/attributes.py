"""Verifies the attributes of IR that comes from outside, each alone and against one another."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, kernels, symbol
from mlirfuse.dialect.attributes import LAUNCH
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.verification import verify_fuse_attributes
from mlirfuse.errors import IRError


def verify_attributes(module: ir.Operation) -> None:
    """Raises `IRError` for the first attribute that the dialect does not have, or whose type or carrier is wrong.

    The kernel that a declaration launches must be in the module. Raises `TargetError` for an unknown target.
    """
    verify_fuse_attributes(module)
    target_of_module(module)
    for function in functions(module):
        if LAUNCH in function.attributes:
            kernel = ir.FlatSymbolRefAttr(function.attributes[LAUNCH]).value
            if kernel not in (present := _launched(module)):
                what = f"{symbol(function)} launches @{kernel}, which is not in the module"
                kinds = "a kernel is a tile program, or a gpu.func in a gpu.module of the same name"
                hint = f"kernels: {', '.join(present)}" if present else kinds
                raise IRError(what, where=function, hint=hint)


def _launched(module: ir.Operation) -> list[str]:
    """The names of a module's kernels: tile programs, and functions in `gpu.module`s of the same name."""
    names = [symbol(kernel) for kernel in kernels(module)]
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module":
            inside = [symbol(f.operation) for f in body(op.operation) if f.name in ("gpu.func", "llvm.func")]
            names += [name for name in inside if name == symbol(op.operation)]
        if op.operation.name == "gpu.binary":
            names.append(symbol(op.operation))
    return names

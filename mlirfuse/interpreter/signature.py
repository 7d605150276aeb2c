"""The functions of a module that can be run, and their arguments, for tools that read inputs from a command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from mlir import ir

from mlirfuse.analysis.memory.workspaces import workspaces
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.interpreter import symbol_ops
from mlirfuse.interpreter.kernel_arguments import argument_name, argument_types
from mlirfuse.interpreter.state.types import DYNAMIC, element_dtype


@dataclass(frozen=True)
class Parameter:
    """An argument or a result.

    Attributes:
        name: the user's name if the signature has one; otherwise the position.
        dtype: type of an element.
        shape: extents, None for dynamic ones; None for a scalar.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Signature:
    """A function that can be run.

    Attributes:
        name: the function's symbol.
        kernel: whether the function writes its results through arguments, as functions for `run_kernel` do.
        arguments: arguments in order, without workspaces; a kernel's outputs come last.
        results: results in order; none for a kernel.
    """

    name: str
    kernel: bool
    arguments: tuple[Parameter, ...]
    results: tuple[Parameter, ...]


def signatures(module: ir.Module | ir.Operation) -> list[Signature]:
    """All functions with a body in module order, those in `gpu.module`s last."""
    with module.context:
        return list(_signatures(module))


def signature(module: ir.Module | ir.Operation, name: str) -> Signature:
    """The function of that name; raises `InterpreterError` if the module has none with a body."""
    known = signatures(module)
    for candidate in known:
        if candidate.name == name:
            return candidate
    names = ", ".join(candidate.name for candidate in known) or "none"
    raise InterpreterError(f"the module has no function @{name} with a body", hint=f"functions: {names}")


def _signatures(module: ir.Module | ir.Operation) -> Iterator[Signature]:
    for op in symbol_ops(module.operation):
        if op.name == "memref.global" or not op.regions[0].blocks:
            continue
        types = argument_types(op)[: len(argument_types(op)) - len(workspaces(op))]
        results = list(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).results)
        yield Signature(
            ir.StringAttr(op.attributes["sym_name"]).value,
            op.name == "gpu.func" or any(isinstance(type_, ir.MemRefType) for type_ in types),
            tuple(_parameter(argument_name(op, position), type_) for position, type_ in enumerate(types)),
            tuple(_parameter(f"result {position}", type_) for position, type_ in enumerate(results)),
        )


def _parameter(name: str, type_: ir.Type) -> Parameter:
    shape = None
    if isinstance(type_, ir.ShapedType):
        shape = tuple(None if extent == DYNAMIC else extent for extent in ir.ShapedType(type_).shape)
    return Parameter(name, element_dtype(type_), shape)

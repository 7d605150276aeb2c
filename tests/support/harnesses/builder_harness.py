"""Traces a function for given NumPy arguments and runs the result at the linalg stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.builder import ScalarSpec, TensorSpec, trace
from mlirfuse.compiler.context import make_context


def spec_of(argument: Any, *, dynamic: tuple[int, ...] = ()) -> TensorSpec | ScalarSpec:
    """The spec of an array, with the named dimensions dynamic, or of a Python number."""
    if isinstance(argument, np.ndarray):
        return TensorSpec([None if d in dynamic else n for d, n in enumerate(argument.shape)], argument.dtype)
    return ScalarSpec(type(argument).__name__)  # type: ignore[arg-type]


def traced(fn: Callable[..., Any], *specs: Any, context: ir.Context | None = None) -> ir.Module:
    """The verified module of a trace."""
    module = trace(fn, specs, context=context or make_context(), name="f")
    module.operation.verify()
    return module


def run(fn: Callable[..., Any], *arguments: Any, dynamic: tuple[int, ...] = ()) -> Any:
    """What the traced function returns for the arguments; one array, or a list of several."""
    module = traced(fn, *(spec_of(a, dynamic=dynamic) for a in arguments))
    results = interpreter.run(module, "f", list(arguments))
    return results[0] if len(results) == 1 else results


def ops(module: ir.Module, name: str) -> list[ir.OpView]:
    """All ops of that name, in order, at any depth. They are freed with the module: keep a reference to it."""
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def function_of(module: ir.Module) -> Any:
    """The module's function."""
    return module.body.operations[0]

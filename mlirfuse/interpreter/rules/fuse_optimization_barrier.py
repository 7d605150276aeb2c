"""`fuse.optimization_barrier`: returns its operand unchanged."""

from __future__ import annotations

from typing import Any

from mlirfuse.interpreter.registry import direct


@direct("fuse.optimization_barrier")
def _optimization_barrier(value: Any, after: Any) -> Any:
    return value

"""`fuse.spill_to_shared`: returns its operand unchanged."""

from __future__ import annotations

from typing import Any

from mlirfuse.interpreter.registry import direct


@direct("fuse.spill_to_shared")
def _spill_to_shared(value: Any) -> Any:
    return value

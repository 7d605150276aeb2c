"""`fuse.spill_to_shared`: keeps a value in shared memory; what the value is does not change."""

from __future__ import annotations

from typing import Any

from mlirfuse.interpreter.registry import direct


@direct("fuse.spill_to_shared")
def _spill_to_shared(value: Any) -> Any:
    return value

"""`fuse.park`: keeps a value in shared memory; what the value is does not change."""

from __future__ import annotations

from typing import Any

from mlirfuse.interpreter.registry import direct


@direct("fuse.park")
def _park(value: Any) -> Any:
    return value

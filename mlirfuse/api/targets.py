"""The targets that a user may name."""

from __future__ import annotations

from mlirfuse.errors import TargetError
from mlirfuse.target import Target, target_of

INTERPRET = "interpret"
"""The target that runs NumPy arrays on the CPU."""


def device_target(target: str | Target) -> Target:
    """`target_of`, whose error says that there is the interpreter too."""
    try:
        return target_of(target)
    except TargetError as error:
        hint = f"{error.hint}; or {INTERPRET!r}, which runs on the CPU"
        raise TargetError(error.message, hint=hint) from None

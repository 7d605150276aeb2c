"""Paths of mlirfuse's files in the user's cache directory."""

from __future__ import annotations

import os
from pathlib import Path

OFF = "off"


def cache_path(variable: str, name: str) -> Path | None:
    """A file or folder of mlirfuse's in the user's cache directory.

    Args:
        variable: the environment variable that names another path, or is `off`.
        name: the name in the cache directory.

    Returns:
        The path, or None where it is switched off.
    """
    given = os.environ.get(variable)
    if given == OFF:
        return None
    if given:
        return Path(given)
    # As platformdirs has it on Linux, where alone MLIR's packages run. GPU hosts that reach no registry have no
    # platformdirs; filelock comes with PyTorch.
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "mlirfuse" / name

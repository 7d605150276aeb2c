"""Logs by Python's `logging`, below the logger `mlirfuse`; `MLIRFUSE_LOG` shows some of them on stderr."""

from __future__ import annotations

import logging
import os

VARIABLE = "MLIRFUSE_LOG"
"""Environment variable: names of `LOGS`, separated by commas, that are written to stderr. It is read on import."""

RECOMPILES = logging.getLogger("mlirfuse.recompiles")
"""Calls of fused functions that no earlier call prepared, and what differs from the nearest that one did."""

LOGS = {"recompiles": RECOMPILES}


def show(names: str) -> None:
    """Writes the logs with these names, separated by commas, to stderr; warns of names that there are not."""
    asked = [name.strip() for name in names.split(",") if name.strip()]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    for name in asked:
        if name not in LOGS:
            known = ", ".join(LOGS)
            logging.getLogger("mlirfuse").warning("%s: there is no log %r; logs: %s", VARIABLE, name, known)
            continue
        LOGS[name].addHandler(handler)
        LOGS[name].setLevel(logging.INFO)
        LOGS[name].propagate = False


show(os.environ.get(VARIABLE, ""))

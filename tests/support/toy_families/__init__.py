"""Instruction families that only tests register: a module for each layer, and an entry of `FAMILIES`.

The modules of a folder here are found as those of the layer's package `families`, as if they stood there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from mlirfuse.distribution.mma import contract
from mlirfuse.schedule.contractions import family as schedules
from mlirfuse.target.instructions import FAMILIES, InstructionFamily
from mlirfuse.tiling.contractions import family as pipelining

LAYERS = {"schedules": schedules.PACKAGE, "pipelining": pipelining.PACKAGE, "products": contract.PACKAGE}
"""The package of each folder's modules."""


@contextmanager
def registered(family: InstructionFamily) -> Iterator[None]:
    """Registers a family whose modules stand here, for as long as the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, family.name, family)
        for folder, package in LAYERS.items():
            module = import_module(package)
            patch.setattr(module, "__path__", [*module.__path__, str(Path(__file__).parent / folder)])
        yield
    for package in LAYERS.values():
        sys.modules.pop(f"{package}.{family.name}", None)

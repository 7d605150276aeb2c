"""Strategies: what a layer does differently for each instruction family, found by the family's name.

A layer that differs by family states an interface, and has a package `families` beside it in which each family has a
module of its name, with an object of that interface as `STRATEGY`. A new family adds a module; no code lists them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mlirfuse.target.instructions import FAMILIES


def strategy_of(package: str, family: str) -> Any | None:
    """The strategy of an instruction family; None for a family that is not registered, or has no module there.

    Args:
        package: full name of the layer's package of strategies.
        family: name of the instruction family.
    """
    name = f"{package}.{family}"
    if family not in FAMILIES or find_spec(name) is None:
        return None
    return import_module(name).STRATEGY

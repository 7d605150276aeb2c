"""Imports point one way, and CuPy is imported at one place: what CONTRIBUTING.md says of the tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import mlirfuse

ROOT = Path(mlirfuse.__file__).parent

LAYERS = (
    *("errors", "target", "schedule", "dialect", "analysis", "tiling", "distribution", "passes", "lowering"),
    *("pipeline", "compile", "tools"),
)
"""Packages and modules, each of which imports those before it alone."""


def _imported(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports; of `from package import name`, `package.name`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _unit(path: Path) -> str:
    """The package right below `mlirfuse` that a file is in, or the module that it is."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _units() -> dict[str, set[str]]:
    """What each of these imports of the others."""
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        names = [name.split(".") for name in _imported(path)]
        units = {parts[1] for parts in names if parts[0] == "mlirfuse" and len(parts) > 1} - {_unit(path)}
        found.setdefault(_unit(path), set()).update(units)
    return found


def test_imports_point_one_way() -> None:
    units = _units()
    assert {"analysis", "dialect", "schedule"} <= units["passes"]
    TopologicalSorter(units).prepare()  # raises CycleError
    for lower, upper in pairwise(LAYERS):
        later = LAYERS[LAYERS.index(upper) :]
        assert not units[lower].intersection(later), f"{lower} imports what comes after it"


def test_only_the_runtime_imports_cupy() -> None:
    importers = {_unit(p) for p in ROOT.rglob("*.py") if any(name.split(".")[0] == "cupy" for name in _imported(p))}
    assert importers == {"runtime"}


def test_what_few_calls_need_is_imported_by_these() -> None:
    """`import mlirfuse` takes half a second, of which the interpreter and what it shows progress with were a tenth."""
    code = "import mlirfuse, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"cupy", "filelock", "rich", "mlirfuse.interpreter"} & set(modules)

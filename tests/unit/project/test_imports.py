"""Imports point one way, and CuPy is imported at one place: what CONTRIBUTING.md says of the tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import mlirfuse

ROOT = Path(mlirfuse.__file__).parent

LAYERS = (
    *(
        "source_locations",
        "errors",
        "target",
        "support",
        "machine",
        "dialect",
        "schedule",
        "analysis",
        "tiling",
        "distribution",
    ),
    *("passmanager", "passes", "lowering", "compiler", "runtime", "api", "tools"),
)
"""Packages and modules, each of which imports those before it alone."""

PASS_FOLDERS = ("graph", "kernels", "splitting", "fusion", "tile", "layouts", "pipelining", "gpu")
"""The same of `mlirfuse.passes`."""

PACKAGES = sorted(path.parent for path in ROOT.rglob("__init__.py"))


def _names(node: ast.AST) -> Iterator[str]:
    """Full names of what a node imports; of `from package import name`, `package.name`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imported(path: Path) -> Iterator[str]:
    """What a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        yield from _names(node)


def _imported_first(path: Path) -> Iterator[str]:
    """What a file imports when it is imported: neither in functions nor for type checkers alone."""
    for node in ast.parse(path.read_text()).body:
        yield from _names(node)


def _children(package: Path, imported: Callable[[Path], Iterator[str]] = _imported) -> dict[str, set[str]]:
    """What each module and package in a package imports of its neighbours."""
    prefix = [*package.relative_to(ROOT.parent).parts]
    depth = len(prefix)
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        child = path.relative_to(package).parts[0].removesuffix(".py")
        names = [name.split(".") for name in imported(path)]
        others = {parts[depth] for parts in names if parts[:depth] == prefix and len(parts) > depth}
        found.setdefault(child, set()).update(others - {child})
    return found


def test_imports_point_one_way() -> None:
    units = _children(ROOT)
    assert {"analysis", "dialect", "schedule"} <= units["passes"]
    TopologicalSorter(units).prepare()  # raises CycleError
    for order, children in ((LAYERS, units), (PASS_FOLDERS, _children(ROOT / "passes"))):
        for lower, upper in pairwise(order):
            later = order[order.index(upper) :]
            assert not children[lower].intersection(later), f"{lower} imports what comes after it"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: ".".join(path.relative_to(ROOT.parent).parts))
def test_neighbours_import_each_other_one_way(package: Path) -> None:
    """Of two modules or packages in one package, one at most imports the other, at any distance."""
    children = _children(package, _imported_first)
    children.pop("__init__", None)
    TopologicalSorter(children).prepare()  # raises CycleError


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: ".".join(path.relative_to(ROOT.parent).parts))
def test_a_package_says_what_belongs_there(package: Path) -> None:
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    assert all(
        (path / "__init__.py").exists() for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))
    )


def test_only_the_runtime_imports_cupy() -> None:
    importers = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.rglob("*.py")
        if any(name.split(".")[0] == "cupy" for name in _imported(path))
    }
    assert importers == {"runtime"}


def test_compiling_imports_nothing_of_the_runtime() -> None:
    above = ("runtime", "api", "tools")
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] not in above:
            assert not any(name.startswith("mlirfuse.runtime") for name in _imported(path)), path


COMPILE = """
import sys, types
package = types.ModuleType("mlirfuse")  # the compiler's modules alone: mlirfuse/__init__.py has the API, and so all
package.__path__ = [sys.argv[1]]
sys.modules["mlirfuse"] = package

from mlirfuse.builder.spec import TensorSpec
from mlirfuse.builder.trace import trace
from mlirfuse.compiler.compile import Lowered
from mlirfuse.compiler.context import make_context
from mlirfuse.target import target_of

module = trace(lambda x: x + x, [TensorSpec((None, 128), "float32")], context=make_context(), name="f")
compiled = Lowered(module, target_of("sm_90a")).compile()
assert ".entry" in compiled.as_text("ptx")
print(*sys.modules)
"""


def test_compiling_loads_nothing_of_the_runtime() -> None:
    """What is imported while a function is compiled to PTX, imports in functions included."""
    run = [sys.executable, "-c", COMPILE, str(ROOT)]
    modules = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    above = ("cupy", "mlirfuse.runtime", "mlirfuse.api", "mlirfuse.tools", "mlirfuse.interpreter")
    assert not [name for name in modules if name.startswith(above)]


def test_what_few_calls_need_is_imported_by_these() -> None:
    """`import mlirfuse` takes half a second, of which the interpreter and what it shows progress with were a tenth."""
    code = "import mlirfuse, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"cupy", "filelock", "rich", "mlirfuse.interpreter"} & set(modules)

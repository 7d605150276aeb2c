"""Facts about the machine stand in `schedule/model`, each once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mlirfuse
from mlirfuse.schedule.model import machine

ROOT = Path(mlirfuse.__file__).parent
MODEL = ROOT / "schedule" / "model"
SIZES = {name: value for name, value in vars(machine).items() if name.isupper()}


def _constants(path: Path) -> Iterator[tuple[str, float]]:
    """The named numbers of a module, each with its value."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and _is_number(value.value):
                    yield name.id, value.value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_sizes_of_the_machine_are_named_once() -> None:
    """No other module gives a name of `machine` a number of its own."""
    for path in ROOT.rglob("*.py"):
        if path != MODEL / "machine.py":
            again = [name for name, _ in _constants(path) if name in SIZES]
            assert not again, f"{path} defines {again}, which `schedule.model.machine` has"


def test_rates_stand_in_the_machine_model() -> None:
    """A number from a gigabyte a second on is a rate, and belongs to `mlirfuse.machine`."""
    for path in (ROOT / "schedule").rglob("*.py"):
        rates = [name for name, value in _constants(path) if value >= 1e9]
        assert not rates, f"{path} defines {rates}: rates belong to `mlirfuse/machine`"

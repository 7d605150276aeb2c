"""Code asks targets and instruction families for what they have, never for their names (docs/targets.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mlirfuse
from mlirfuse.target import TARGETS
from mlirfuse.target.instructions import FAMILIES

ROOT = Path(mlirfuse.__file__).parent

NAMES_ALLOWED = {"target/table.py", "target/instructions.py"}
"""Where names of architectures and of instruction families stand."""

CAPABILITIES_ALLOWED = {
    "target/architecture.py",
    "runtime/device/cuda.py",  # finds the target of a device by its capability
    "runtime/device/module.py",  # code for a device of another capability is assembled by the driver
    "lowering/ptx/miscompilations.py",  # an assembler's errors are listed by range of capabilities
}

CHIP = re.compile(r"sm_\d+[af]?")
OTHER_FMA = {"interpreter/rules/math_ops.py", "lowering/ptx/ptx_ranges.py", "tools/commands/demo.py", "dialect/mma.py"}
"""Where these words are names of ops or of PTX instructions."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def nodes() -> dict[str, list[ast.AST]]:
    """All that is in the syntax trees of the package's files, by name."""
    return {_name(path): list(ast.walk(ast.parse(path.read_text()))) for path in sorted(ROOT.rglob("*.py"))}


def test_no_name_of_a_chip_or_family_is_compared(nodes: dict[str, list[ast.AST]]) -> None:
    found = {}
    for file in nodes.keys() - NAMES_ALLOWED:
        whole = [node.value for node in nodes[file] if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        found[file] = [text for text in whole if CHIP.fullmatch(text) or (text in FAMILIES and file not in OTHER_FMA)]
    assert len(found) > 400
    assert not {file: names for file, names in found.items() if names}


def test_no_capability_is_compared(nodes: dict[str, list[ast.AST]]) -> None:
    found = {}
    for file in nodes.keys() - CAPABILITIES_ALLOWED - {"schedule/schedule.py", CHECKS}:
        compared = [node for node in nodes[file] if isinstance(node, ast.Compare)]
        parts = (part for node in compared for part in ast.walk(node) if isinstance(part, ast.Attribute))
        found[file] = {part.attr for part in parts} & {"capability", "chip", "instruction"}
    assert len(found) > 400
    assert not {file: names for file, names in found.items() if names}


CHECKS = "schedule/contractions/checks.py"
"""This file and `schedule.py` look whether a family of that name exists."""


def test_specific_architectures_have_all_of_their_bases() -> None:
    for chip, target in TARGETS.items():
        if target.is_specific:
            base = TARGETS[chip[:-1]]
            has = [name for name in vars(base) if name.startswith("has_") and getattr(base, name)]
            assert all(getattr(target, name) for name in has)


def test_every_family_exists_somewhere_and_falls_back_on_another() -> None:
    for family in FAMILIES.values():
        assert any(map(family.exists_on, TARGETS.values()))
        assert family.fallback is None or family.fallback in FAMILIES

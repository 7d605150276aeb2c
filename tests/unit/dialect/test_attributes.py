"""Each discardable attribute of the dialect is declared once, and its documented readers and writers are right."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import mlirfuse
from mlirfuse.compiler.context import make_context
from mlirfuse.dialect import OPS, attributes, copies, expected_extents, separation
from mlirfuse.dialect.attributes import ATTRIBUTES
from mlirfuse.errors import IRError
from mlirfuse.passmanager import registry
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.renamed_names import RENAMED
from mlirfuse.tools.attributes import verify_attributes

ROOT = Path(mlirfuse.__file__).parent
SOURCES = {path: path.read_text() for path in ROOT.rglob("*.py") if path.name != "attributes.py"}


def test_no_file_spells_the_name_of_an_attribute() -> None:
    for path, text in SOURCES.items():
        spelled = set(re.findall(r"[\"'](fuse\.\w+)[\"']", text)) & set(ATTRIBUTES)
        if path.name == "renamed_names.py":
            spelled -= set(RENAMED["attribute"].values())
        assert not spelled, f"{path} spells {spelled}: use the constants of mlirfuse.dialect.attributes"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_is_said_of_an_attribute_is_so(name: str) -> None:
    known, constant = ATTRIBUTES[name], name.removeprefix("fuse.").upper()
    assert name in [getattr(module, constant, None) for module in (attributes, copies, expected_extents, separation)]
    assert name not in OPS
    for user in [*known.set_by.split(", "), *known.read_by.split(", ")]:
        assert any(re.search(rf"\b{constant}\b", text) for text in _sources(user)), f"{user} does not use {name}"


def _sources(user: str) -> list[str]:
    """Texts of the files that a pass, a module or a package consists of."""
    if user in registry.names():
        return [Path(inspect.getfile(registry.lookup(user))).read_text()]
    path = ROOT / user
    return [text for file, text in SOURCES.items() if file == path.with_suffix(".py") or path in file.parents]


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [
        ("fuse.kernal", r"did you mean fuse\.kernel\?"),
        ("fuse.grid_finish", r"fuse\.grid_finish was renamed to fuse\.grid_reduction"),
        ("fuse.zzzzzzzz", r"docs/dialect\.md lists all"),
    ],
)
def test_unknown_names_get_a_hint(attribute: str, hint: str) -> None:
    text = f"func.func @f() attributes {{{attribute}}} {{ return }}"
    with pytest.raises(IRError, match=rf"an unknown attribute {attribute}(.|\n)*hint: {hint}"):
        verify_attributes(parse_module(text, make_context()).operation)


def test_a_carrier_that_nothing_reads_from_is_named() -> None:
    text = "func.func @f() attributes {fuse.align = 16 : i64} { return }"
    with pytest.raises(IRError, match=r"fuse\.align is on 'func.func' op(.|\n)*arguments of `func\.func`"):
        verify_attributes(parse_module(text, make_context()).operation)

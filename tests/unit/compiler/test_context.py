"""What contexts know from the start, and what they learn."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlir import ir

import mlirfuse
from mlirfuse.compiler.context import BUILT, make_context
from mlirfuse.dialect.optimization_barrier import optimization_barrier


def _dialects_imported() -> Iterator[str]:
    """The dialects whose builders mlirfuse imports."""
    for path in Path(mlirfuse.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "mlir.dialects":
                yield from (alias.name for alias in node.names)


def test_dialects_that_are_built_are_loaded() -> None:
    assert set(_dialects_imported()) == {*BUILT, "builtin"}  # which every context has


def test_other_dialects_are_loaded_when_they_are_met() -> None:
    with make_context():
        module = ir.Module.parse("func.func @f(%a: index) -> index { %0 = index.add %a, %a  return %0 : index }")
        assert module.operation.verify()


def test_ops_of_the_fuse_dialect_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings look for Python classes of a dialect's ops, and where they find no module for them, every time."""
    searched: list[str] = []

    class Recorder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            searched.append(name)

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%a: i32) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            optimization_barrier(block.arguments[0], block.arguments[0])
        names = [op.operation.name for op in block.operations]
        monkeypatch.setattr(sys, "meta_path", [Recorder(), *sys.meta_path])
        assert [op.operation.name for op in block.operations] == names == ["fuse.optimization_barrier", "func.return"]
    assert not searched

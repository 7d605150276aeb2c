"""The generated reference is what the docstrings say now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlirfuse import dialect
from mlirfuse.passmanager import registry
from mlirfuse.tools import docs


@pytest.mark.parametrize(("file", "generate"), docs.REFERENCES.items())
def test_the_reference_is_up_to_date(file: str, generate: Callable[[], str]) -> None:
    assert (docs.DOCS / file).read_text() == generate(), "run `make docs`"


def test_every_pass_and_op_has_a_section() -> None:
    passes, ops = docs.passes_markdown(), docs.dialect_markdown()
    assert all(f"## `{name}`\n" in passes for name in registry.names())
    assert all(f"## `{name}`\n" in ops for name in dialect.OPS)


def test_check_names_the_file_that_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    assert docs.main(["--check"]) == 1
    assert "docs/passes.md: out of date with the docstrings" in capsys.readouterr().err
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0

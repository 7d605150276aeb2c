"""The rules of --verify-diagnostics, without MLIR."""

from __future__ import annotations

import pytest

from mlirfuse.errors import IRError
from mlirfuse.support.diagnostics import Diagnostic
from mlirfuse.tools.expected import expectations, unmet


def error(line: int, message: str = "boom", notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    return Diagnostic("error", message, "f.mlir", line, 1, notes)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{boom}}", 1),
        ("// expected-error @+2 {{boom}}", 3),
        ("op\n// expected-error@-1 {{boom}}", 1),
        ("// expected-error @below {{boom}}\n// expected-note @below {{x}}\nop", 3),
        ("op\n// expected-note @above {{x}}\n// expected-error @above {{boom}}", 1),
        ("// expected-error @unknown {{boom}}", 0),
    ],
)
def test_the_line_that_a_comment_is_about(text: str, line: int) -> None:
    (found,) = (entry for entry in expectations(text, "f.mlir") if entry.severity == "error")
    assert found.line == line


def test_lines_count_from_the_file_in_a_later_chunk() -> None:
    (found,) = expectations("// expected-error @below {{boom}}\nop", "f.mlir", first_line=10)
    assert (found.written_at, found.line) == (10, 11)


def test_each_expectation_stands_for_one_diagnostic() -> None:
    once = expectations("op // expected-error {{boom}}", "f.mlir")
    assert unmet(once, [error(1)], "f.mlir", strict=True) == []
    assert unmet(once, [error(1), error(1)], "f.mlir", strict=True) == ["f.mlir:1:1: error: unexpected error: boom"]
    assert unmet(once, [], "f.mlir", strict=True) == ['f.mlir:1: error: expected error "boom" was not produced']


def test_severity_line_and_text_must_all_agree() -> None:
    expected = expectations("op // expected-error {{boom}}", "f.mlir")
    for given in (error(2), error(1, "bang"), Diagnostic("warning", "boom", "f.mlir", 1, 1)):
        assert len(unmet(expected, [given], "f.mlir", strict=True)) == 2
        assert len(unmet(expected, [given], "f.mlir", strict=False)) == 1


def test_text_is_literal_unless_marked_as_a_regular_expression() -> None:
    literal = expectations("op // expected-error {{dims [.*]}}", "f.mlir")
    assert unmet(literal, [error(1, "dims [1]")], "f.mlir", strict=False)
    assert not unmet(literal, [error(1, "dims [.*]")], "f.mlir", strict=False)
    regex = expectations("op // expected-error-re {{dims [{{[0-9]}}]}}", "f.mlir")
    assert not unmet(regex, [error(1, "dims [1]")], "f.mlir", strict=False)


def test_notes_are_matched_and_never_required() -> None:
    note = Diagnostic("note", "see here", "f.mlir", 2, 1)
    expected = expectations("op // expected-error {{boom}}\n// expected-note {{see}}", "f.mlir")
    assert unmet(expected, [error(1, notes=(note,))], "f.mlir", strict=True) == []
    assert unmet(expected[:1], [error(1, notes=(note,))], "f.mlir", strict=True) == []


def test_a_malformed_expectation_is_refused() -> None:
    with pytest.raises(IRError, match="f.mlir:2: malformed expectation"):
        expectations("op\n// expected-error @below {boom}", "f.mlir")

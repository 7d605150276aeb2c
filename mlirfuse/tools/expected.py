"""`--verify-diagnostics`: comments that say which diagnostics a file must give, in upstream's syntax.

```mlir
// expected-error @below {{part of the message}}
// expected-remark @+2 {{...}}      also warning, note; @-1, @above, @unknown; no @ for the same line
// expected-error-re {{dims {{.*}} must}}    text with regular expressions inside {{}}
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mlirfuse.errors import IRError
from mlirfuse.support.diagnostics import Diagnostic

_DESIGNATOR = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?\s*"
    r"(?:@(?P<at>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$"
)
_BEGINS = re.compile(r"//\s*expected-(error|warning|remark|note)")


@dataclass(frozen=True)
class Expectation:
    """One diagnostic that must be given.

    Attributes:
        severity: `error`, `warning`, `remark` or `note`.
        pattern: searched for in the message.
        text: the pattern as the file has it.
        line: line it is expected at, from 1; 0 for a diagnostic with no location.
        written_at: line of the comment.
    """

    severity: str
    pattern: re.Pattern[str]
    text: str
    line: int
    written_at: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether that diagnostic is the one expected."""
        here = (self.severity, self.line) == (diagnostic.severity, diagnostic.line)
        return here and self.pattern.search(diagnostic.message) is not None


def expectations(text: str, file: str, first_line: int = 1) -> list[Expectation]:
    """The diagnostics that the comments of a text expect.

    Args:
        text: the file's text, or a chunk of it.
        file: its name, for errors.
        first_line: number of the chunk's first line in the file.

    Raises:
        IRError: a comment begins like an expectation and is none.
    """
    found: list[Expectation] = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        match = _DESIGNATOR.search(line)
        if match is not None:
            target = _target(match["at"], index, lines)
            pattern = _pattern(match["text"]) if match["regex"] else re.compile(re.escape(match["text"]))
            line_number = first_line + target if target is not None else 0
            found.append(Expectation(match["severity"], pattern, match["text"], line_number, first_line + index))
        elif _BEGINS.search(line):
            where = f"{file}:{first_line + index}"
            raise IRError("malformed expectation", where=where, hint="write // expected-error @below {{message}}")
    return found


def unmet(expected: Iterable[Expectation], given: Iterable[Diagnostic], file: str, *, strict: bool) -> list[str]:
    """A message for each difference between expected and given diagnostics; empty when the file verifies.

    Args:
        expected: from `expectations`; each stands for exactly one diagnostic.
        given: diagnostics in the order they were given; their notes are matched where expected, and never required.
        file: name of the file, for the messages.
        strict: report given diagnostics that nothing expects (`all`, as against `only-expected`).
    """
    pending = list(expected)
    problems = []
    for diagnostic in given:
        match = next((entry for entry in pending if entry.matches(diagnostic)), None)
        if match is not None:
            pending.remove(match)
        elif strict:
            problems.append(f"{diagnostic.place}: error: unexpected {diagnostic.severity}: {diagnostic.message}")
        for note in diagnostic.notes:
            match = next((entry for entry in pending if entry.matches(note)), None)
            if match is not None:
                pending.remove(match)
    for entry in pending:
        place = f"{file}:{entry.written_at}"
        problems.append(f'{place}: error: expected {entry.severity} "{entry.text}" was not produced')
    return problems


def _target(at: str | None, index: int, lines: list[str]) -> int | None:
    """Index of the line a comment at `index` is about; None for no location."""
    if at is None:
        return index
    if at == "unknown":
        return None
    if at in ("above", "below"):
        step = -1 if at == "above" else 1
        index += step
        while 0 <= index < len(lines) and _DESIGNATOR.search(lines[index]):
            index += step
        return index
    return index + int(at)


def _pattern(text: str) -> re.Pattern[str]:
    """Literal text with regular expressions between `{{` and `}}`."""
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))

"""Parser of textual pass pipelines; `spec` and `manager` interpret the names.

```
pipeline ::= "builtin.module" "(" [element ("," element)*] ")"
element  ::= name ["{" options "}"] | op-name "(" [element ("," element)*] ")"
```

This is upstream's grammar with one anchor, `builtin.module`. Quoted text inside options may hold any character; a
backslash escapes the next one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlirfuse.errors import PipelineError

ANCHOR = "builtin.module"
_NAME = re.compile(r"[A-Za-z_][\w.\-$]*")


@dataclass(frozen=True)
class Element:
    """A pass, or an op name with the pipeline nested on it.

    Attributes:
        name: the pass's name, or the op's for a nested pipeline.
        options: the text between the braces; None where there are no braces.
        nested: the nested elements; None for a pass.
        position: offset of the name in the pipeline's text.
        options_position: offset of `options`.
    """

    name: str
    options: str | None = None
    nested: tuple[Element, ...] | None = None
    position: int = 0
    options_position: int = 0

    def __str__(self) -> str:
        options = f"{{{self.options}}}" if self.options else ""
        nested = "" if self.nested is None else f"({','.join(map(str, self.nested))})"
        return self.name + options + nested


def at(position: int) -> str:
    """The `where` of an error at that offset of a pipeline's text; columns count from 1."""
    return f"pipeline, column {position + 1}"


def parse_pipeline(text: str) -> tuple[Element, ...]:
    """The elements inside the `builtin.module(...)` of a pipeline; raises `PipelineError`."""
    parser = _Parser(text)
    anchor = parser.element()
    parser.skip_space()
    if anchor.name != ANCHOR or anchor.nested is None:
        hint = f"write {ANCHOR}(pass,pass,...)"
        raise PipelineError(f"the pipeline is not anchored on {ANCHOR}", where=at(0), hint=hint)
    if parser.position < len(text):
        raise PipelineError(f"unexpected {text[parser.position]!r} after the pipeline", where=at(parser.position))
    return anchor.nested


def truncate(elements: tuple[Element, ...], name: str, occurrence: int) -> tuple[tuple[Element, ...], int]:
    """Drops all elements after the n-th pass of that name, in nested pipelines too.

    Returns the elements that are left, and how many occurrences are still missing (0: it was found).
    """
    kept: list[Element] = []
    for element in elements:
        if element.nested is not None:
            nested, occurrence = truncate(element.nested, name, occurrence)
            element = replace(element, nested=nested)
        elif element.name == name:
            occurrence -= 1
        kept.append(element)
        if occurrence == 0:
            break
    return tuple(kept), occurrence


def closing(text: str, start: int, pair: str) -> int:
    """Offset of the bracket that closes the one at `start`, skipping quoted text; raises `PipelineError`."""
    depth, position = 0, start
    while position < len(text):
        char = text[position]
        if char in "\"'":
            position = closing_quote(text, position)
        elif char == pair[0]:
            depth += 1
        elif char == pair[1]:
            depth -= 1
            if depth == 0:
                return position
        position += 1
    raise PipelineError(f"{pair[0]!r} is never closed", where=at(start), hint=f"add the missing {pair[1]!r}")


def closing_quote(text: str, start: int) -> int:
    """Offset of the quote that ends the string at `start`; raises `PipelineError`."""
    position = start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == text[start]:
            return position
        position += 1
    raise PipelineError("a quoted string is never closed", where=at(start), hint=f"add the missing {text[start]}")


class _Parser:
    """Recursive descent over one text; `position` is the next character to read."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def peek(self) -> str:
        self.skip_space()
        return self.text[self.position : self.position + 1]

    def element(self) -> Element:
        self.skip_space()
        match = _NAME.match(self.text, self.position)
        if match is None:
            found = repr(self.text[self.position]) if self.position < len(self.text) else "the end"
            raise PipelineError(f"expected a pass or op name, found {found}", where=at(self.position))
        element = Element(match[0], position=match.start())
        self.position = match.end()
        if self.peek() == "{":
            end = closing(self.text, self.position, "{}")
            start = self.position + 1
            element = replace(element, options=self.text[start:end], options_position=start)
            self.position = end + 1
        if self.peek() == "(":
            element = replace(element, nested=self.nested())
        return element

    def nested(self) -> tuple[Element, ...]:
        """Reads a parenthesised list of elements."""
        start = self.position
        self.position += 1
        elements: list[Element] = []
        if self.peek() == ")":
            self.position += 1
            return ()
        while True:
            elements.append(self.element())
            separator = self.peek()
            if separator not in (",", ")"):
                if separator == "":
                    raise PipelineError("'(' is never closed", where=at(start), hint="add the missing ')'")
                raise PipelineError(f"expected ',' or ')', found {separator!r}", where=at(self.position))
            self.position += 1
            if separator == ")":
                return tuple(elements)

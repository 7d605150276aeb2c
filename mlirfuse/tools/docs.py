"""Writes the references `docs/passes.md`, `docs/dialect.md` and `docs/machine.md` from the docstrings and tables.

`python -m mlirfuse.tools.docs [--check]`
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mlirfuse import dialect
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import ATTRIBUTES
from mlirfuse.dialect.base import OPTIONAL, VARIADIC, Field, OpDefinition
from mlirfuse.dialect.verification import carriers_text
from mlirfuse.errors import IRError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.base import Pass
from mlirfuse.passmanager.spec import Option, options_of
from mlirfuse.tools.machine_docs import machine_markdown
from mlirfuse.tools.reporting import Parser, run_tool, write_text

DOCS = Path(__file__).parents[2] / "docs"
_NOTICE = "<!-- Written by `make docs` from the docstrings. -->"


def passes_markdown() -> str:
    """The reference of passes and named pipelines, in the order in which they run."""
    sections = [_NOTICE, "# Passes", "Options are written `pass{option=value other=1,2}`; see `mlirfuse-opt --help`."]
    sections += [_pass_section(registry.lookup(name)) for name in pipeline.passes()]
    sections.append("# Pipelines")
    sections += [
        f"## `{name}`\n\n```\n{text.replace('{{', '{').replace('}}', '}')}\n```"
        for name, text in pipeline.NAMED.items()
    ]
    return "\n\n".join(sections) + "\n"


def dialect_markdown() -> str:
    """The reference of the fuse dialect's ops and discardable attributes."""
    sections = [_NOTICE, "# The `fuse` dialect", inspect.cleandoc(dialect.__doc__ or "")]
    sections += [_op_section(definition) for _, definition in sorted(dialect.OPS.items())]
    sections += ["# Discardable attributes", *map(_attribute_section, sorted(ATTRIBUTES))]
    return "\n\n".join(sections) + "\n"


REFERENCES = {"passes.md": passes_markdown, "dialect.md": dialect_markdown, "machine.md": machine_markdown}
"""The files, and what makes the text of each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the files, or with `--check` returns 1 where they are out of date."""
    return run_tool("mlirfuse.tools.docs", lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser("python -m mlirfuse.tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file is out of date")
    options: argparse.Namespace = parser.parse_args(arguments)
    for name, generate in REFERENCES.items():
        path, text = DOCS / name, generate()
        if options.check and (not path.exists() or path.read_text() != text):
            raise IRError("out of date with the docstrings", where=f"docs/{name}", hint="run `make docs`")
        if not options.check:
            write_text(str(path), text)
    return 0


def _pass_section(cls: type[Pass]) -> str:
    text, meanings = _split_attributes(inspect.cleandoc(cls.__doc__ or ""))
    parts = [f"## `{cls.name}`", text]
    rows = [
        f"| `{option.name}` | `{_escape(option.type_name)}` | `{_default(option)}` | {meanings.get(option.field, '')} |"
        for option in options_of(cls)
    ]
    if rows:
        parts.append("\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _split_attributes(text: str) -> tuple[str, dict[str, str]]:
    """A docstring without its `Attributes:` section, and the section's text for each field."""
    before, _, section = text.partition("\nAttributes:\n")
    meanings: dict[str, str] = {}
    lines, field = section.splitlines(), ""
    while lines and (lines[0].startswith(" ") or not lines[0]):
        line = lines.pop(0)
        if line.startswith("    ") and not line.startswith("     "):
            field, _, meaning = line.strip().partition(":")
            meanings[field] = _escape(meaning.strip())
        elif line:
            meanings[field] += " " + _escape(line.strip())
    return "\n".join([before.rstrip(), *([""] if lines else []), *lines]), meanings


def _op_section(definition: OpDefinition) -> str:
    module = import_module(f"{dialect.__name__}.{definition.name}")
    # The docstring's first line repeats the op's name before a colon.
    text = inspect.cleandoc(module.__doc__ or "").removeprefix(f"`{definition.full_name}`: ")
    parts = [f"## `{definition.full_name}`", text[:1].upper() + text[1:]]
    rows = [f"| {kind} | `{name}` | {count} |" for kind, name, count in _fields(definition)]
    if rows:
        parts.append("\n".join(["| | name | count |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _attribute_section(name: str) -> str:
    known = ATTRIBUTES[name]
    text = known.type.text
    rows = [("type", text), ("on", carriers_text(name)), ("set by", known.set_by), ("read by", known.read_by)]
    lines = [f"- {what}: {_escape(value)}" for what, value in rows]
    return "\n".join([f"## `{name}`", "", known.meaning, "", *lines])


def _fields(definition: OpDefinition) -> list[tuple[str, str, str]]:
    fields = [("operand", field[0], _count(field)) for field in definition.operands]
    fields += [("result", field[0], _count(field)) for field in definition.results]
    return fields + [("attribute", name, "1") for name in definition.attributes]


def _count(field: Field) -> str:
    return {VARIADIC: "any number", OPTIONAL: "0 or 1"}.get(field[1], "1")


def _default(option: Option) -> str:
    return (
        str(option.default).lower()
        if option.default is None or isinstance(option.default, bool)
        else str(option.default)
    )


def _escape(text: str) -> str:
    """A `|` would end the table's cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())

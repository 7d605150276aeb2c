"""PTX without the names that a program gave: what is left is the code."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = r"[A-Za-z_$%][\w$]*"
_INLINE = re.compile(r"[ \t]*// begin inline asm\n(.*?)[ \t]*// end inline asm", re.S)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_DEBUG = re.compile(r"^\s*\.(?:loc|file)\b.*$", re.M)
_WORD = re.compile(rf"(?<![\w$.%]){_NAME}")

_FUNCTION = re.compile(rf"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(?P<name>{_NAME})")
_VARIABLE = re.compile(
    r"\.(?P<space>param|shared|global|const|local)\s+"
    rf"(?:\.(?:align|ptr|param|shared|global|const|local)\b\s*\d*\s*|\.\w+\s+)*(?P<name>{_NAME})\s*(?=[\[;,=)\n])"
)
_REGISTERS = re.compile(rf"\.reg\s+(?:\.\w+\s+)+(?P<names>{_NAME}(?:\s*,\s*{_NAME})*)\s*;")
_LOCAL = re.compile(r"local\d+")
_LABEL = re.compile(rf"(?:^|(?<=[;{{}}]))[ \t]*(?P<name>{_NAME})\s*:(?!:)", re.M)


def kernels_in(text: str) -> list[str]:
    """The PTX modules of a text that has them one after the other."""
    return [".version" + module for module in re.split(r"^\.version\b", text, flags=re.M)[1:]]


def normalised(ptx: str) -> str:
    """A module of PTX without comments and positions, its symbols and labels named in the order in which they appear.

    Inline assembly has names of its own (`local0`, ...), so that renaming those of one piece leaves others alone.
    Numbered registers stay as they are: the same program has the same.
    """
    without_names = _INLINE.sub(lambda match: _renamed(match[1], _locals(match[1])), ptx)
    bare = _DEBUG.sub("", _COMMENT.sub("", without_names))
    lines = (" ".join(line.split()) for line in _renamed(bare, _globals(bare)).splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: names.get(match[0], match[0]), text)


def _globals(text: str) -> dict[str, str]:
    """New names of what a module declares."""
    found: list[tuple[int, str, str]] = [(m.start(), "function", m["name"]) for m in _FUNCTION.finditer(text)]
    found += [(m.start(), m["space"], m["name"]) for m in _VARIABLE.finditer(text)]
    found += [(m.start(), "label", m["name"]) for m in _LABEL.finditer(text)]
    found += _registers(text, "register")
    return _numbered(found)


def _locals(text: str) -> dict[str, str]:
    """New names of what a piece of inline assembly declares."""
    labels = [(m.start(), "local", m["name"]) for m in _LABEL.finditer(text)]
    return _numbered([*labels, *_registers(text, "local")])


def _registers(text: str, kind: str) -> list[tuple[int, str, str]]:
    return [
        (match.start("names") + at, kind, name)
        for match in _REGISTERS.finditer(text)
        for at, name in enumerate(re.findall(_NAME, match["names"]))
    ]


def _numbered(found: list[tuple[int, str, str]]) -> dict[str, str]:
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for _, kind, name in sorted(found):
        if name not in names and not _LOCAL.fullmatch(name):  # those of inline assembly are new already
            names[name] = f"{kind}{counts.setdefault(kind, 0)}"
            counts[kind] += 1
    return names

"""What differs between two digests, for a reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from tests.ptx_digest.digest import Record, unpacked

SHOWN, WIDTH = 12, 150
"""Lines of a difference, and columns of a line, that are printed."""

ALIGNED = 600
"""Lines in which a common subsequence is looked for; of more, only the first that differ are shown."""

_NUMBERED = re.compile(r"%([a-z]+)\d+")
_OPCODE = re.compile(r"^(?:@!?\S+ )?(?:\{ ?)?([a-z][\w.:]*)")


def compared(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, bool]:
    """A report, and whether anything differs: code, launch data, an error that is new, or a case that is gone.

    Errors of other words, and cases that were added or mended, are reported and are no difference.
    """
    notes = [f"before {before['commit']}, after {after['commit']}"]
    if before["versions"] != after["versions"]:
        notes.append(f"made with other versions: {before['versions']} and {after['versions']}")
    differences, equal = [], 0
    for name in sorted(before["cases"].keys() | after["cases"].keys()):
        old, new = before["cases"].get(name), after["cases"].get(name)
        if old is None or new is None:
            (notes if old is None else differences).append(f"{name}: {'added' if old is None else 'gone'}")
        elif "error" in old:
            if old != new:
                notes.append(
                    f"{name}: {'another error' if 'error' in new else 'compiles now'}; was {_short(old['error'])}"
                )
        elif found := _different(old, new):
            differences.append("\n".join([f"{name}:", *(f"  {line}" for line in found)]))
        else:
            equal += len(old["kernels"])
    summary = f"{equal} kernels are equal; {len(differences)} cases differ"
    return "\n".join([*notes, *differences, summary]), bool(differences)


def _different(old: Record, new: Record) -> list[str]:
    """How two records of a case that once compiled differ."""
    if "error" in new:
        return [f"does not compile any more: {_short(new['error'])}"]
    if old["target"] != new["target"]:
        return [f"compiled for {old['target']}, and now for {new['target']}"]
    if len(old["kernels"]) != len(new["kernels"]):
        return [f"{len(old['kernels'])} kernels became {len(new['kernels'])}"]
    found: list[str] = []
    for number, (a, b) in enumerate(zip(old["kernels"], new["kernels"], strict=True)):
        for key in a["launch"].keys() | b["launch"].keys():
            values = a["launch"].get(key), b["launch"].get(key)
            if values[0] != values[1]:
                found.append(f"kernel {number} is launched otherwise: {key} was {values[0]}, is {values[1]}")
        if a["sha256"] != b["sha256"]:
            lines = list(_hint(unpacked(a["ptx"]).splitlines(), unpacked(b["ptx"]).splitlines()))
            found += [f"kernel {number}: {a['lines']} lines of PTX became {b['lines']}", *lines]
    return found


def _hint(old: list[str], new: list[str]) -> Iterator[str]:
    """Which instructions are more or fewer, and the first lines that differ, whatever their registers' numbers are."""
    change = _opcodes(new)
    change.subtract(_opcodes(old))
    if counts := [f"{count:+d} {opcode}" for opcode, count in sorted(change.items()) if count]:
        yield f"  instructions: {_short(', '.join(counts))}"
    plain_old, plain_new = ([_NUMBERED.sub(r"%\1", line) for line in lines] for lines in (old, new))
    if plain_old == plain_new:
        yield "  only the numbers of registers differ"
        return
    start = 0
    while plain_old[start : start + 1] == plain_new[start : start + 1]:
        start += 1
    parts = plain_old[start : start + ALIGNED], plain_new[start : start + ALIGNED]
    shown = [line for line in unified_diff(*parts, n=1, lineterm="") if not line.startswith(("---", "+++", "@@"))]
    yield f"  from line {start + 1} of the normalised PTX on:"
    yield from (f"    {_short(line)}" for line in shown[:SHOWN])
    if len(shown) > SHOWN:
        yield f"    and {len(shown) - SHOWN} lines more"


def _opcodes(lines: list[str]) -> Counter[str]:
    return Counter(match[1] for line in lines if (match := _OPCODE.match(line)) and not line.endswith(":"))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}..."

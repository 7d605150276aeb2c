"""Ranges of float32 registers of PTX, as assemblers may know them: at least as narrow as theirs, NaN apart.

For a register that a loop carries, only the values of the first two iterations count: a range that holds for all
iterations is no narrower.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isnan

Range = tuple[float, float]
"""The least and the greatest value."""

_ANY: Range = (-inf, inf)
_NOT_NEGATIVE: Range = (0.0, inf)
_UNIT: Range = (-1.0, 1.0)

_INSTRUCTION = re.compile(
    r"^\s*(?P<name>[a-z]\w*)(?P<modifiers>(?:\.\w+)*)\.(?:f32|b32)\s+(?P<to>%\w+), (?P<of>[^;{}\[\]]*);$", re.MULTILINE
)
_COMPARISON = re.compile(r"^\s*setp\.(?P<kind>gt|ge|lt|le)(?:\.ftz)?\.f32\s+%\w+, (?P<left>\S+), (?P<right>\S+);$")
_SINGLE = struct.Struct("f")
_BITS = re.compile(r"0[fF]([0-9a-fA-F]{8})")


def _rounded(value: float) -> float:
    try:
        return float(_SINGLE.unpack(_SINGLE.pack(value))[0])
    except OverflowError:
        return inf if value > 0 else -inf


def _spanned(values: list[float]) -> Range:
    """The range of values in float32; any number where one is NaN, as of the sum of infinities of both signs."""
    return _ANY if any(map(isnan, values)) else (_rounded(min(values)), _rounded(max(values)))


def _union(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _abs(of: Range) -> Range:
    low, high = of
    return (max(low, -high, 0.0), max(-low, high))


def _neg(of: Range) -> Range:
    return -of[1], -of[0]


def _add(left: Range, right: Range) -> Range:
    return _spanned([left[0] + right[0]])[0], _spanned([left[1] + right[1]])[1]


def _mul(left: Range, right: Range) -> Range:
    # 0 * inf is NaN; all other products lie between the products of the bounds
    products = [a * b for a in left for b in right]
    return _spanned([0.0 if isnan(product) else product for product in products])


def _max(*ranges: Range) -> Range:
    return max(low for low, _ in ranges), max(high for _, high in ranges)


def _min(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), min(high for _, high in ranges)


_RANGES: dict[str, Callable[..., Range]] = {
    "abs": _abs,
    "neg": _neg,
    "add": _add,
    "sub": lambda left, right: _add(left, _neg(right)),
    "mul": _mul,
    "fma": lambda left, right, third: _add(_mul(left, right), third),
    "max": _max,
    "min": _min,
    "mov": lambda of: of,
    "selp": lambda left, right, _: _union(left, right),
    "ex2": lambda _: _NOT_NEGATIVE,
    "sqrt": lambda _: _NOT_NEGATIVE,
    "rsqrt": lambda _: _NOT_NEGATIVE,
    "sin": lambda _: _UNIT,
    "cos": lambda _: _UNIT,
    "tanh": lambda _: _UNIT,
}


@dataclass(frozen=True)
class _Definition:
    """A register and the instructions that set it."""

    name: str
    modifiers: str
    to: str
    of: tuple[str, ...]

    def range(self, operands: Sequence[Range | None]) -> Range | None:
        """The register's range; None where an operand is not known yet, as a value from the end of a loop at its
        start.
        """
        if ".sat" in self.modifiers:
            return 0.0, 1.0
        ranges = list(operands)
        if self.name in ("mul", "fma") and self.of[0] == self.of[1] and ranges[0] is not None:
            ranges[0] = ranges[1] = _abs(ranges[0])
        given = [each for each in ranges if each is not None]
        return _RANGES[self.name](*given) if len(given) == len(ranges) else None


def _definitions(ptx: str, wanted: Iterable[str]) -> list[_Definition]:
    """The instructions that set registers, and those that set what these are computed from, as they stand in the text.

    Few registers of a long kernel are compared, so that other instructions are only told apart.
    """
    setting: dict[str, list[int]] = {}
    found = _INSTRUCTION.findall(ptx)
    for number, (name, modifiers, to, _) in enumerate(found):
        if name in _RANGES or ".sat" in modifiers:
            setting.setdefault(to, []).append(number)
    needed: dict[int, _Definition] = {}
    waiting = list(wanted)
    while waiting:
        for number in setting.pop(waiting.pop(), ()):
            name, modifiers, to, of = found[number]
            needed[number] = _Definition(name, modifiers, to, tuple(of.split(", ")))
            waiting += needed[number].of
    return [needed[number] for number in sorted(needed)]


def _ranges(ptx: str, wanted: Iterable[str]) -> Callable[[str], Range | None]:
    """What is known of each of the operands that are wanted."""
    definitions = _definitions(ptx, wanted)
    defined = {definition.to for definition in definitions}
    found: dict[str, Range] = {}

    def known(operand: str) -> Range | None:
        return found.get(operand) if operand in defined else _constant(operand)

    before: dict[int, list[Range | None]] = {}
    for _ in range(2):  # blocks may precede their predecessors in the text
        for number, definition in enumerate(definitions):
            operands = [known(operand) for operand in definition.of]
            if before.get(number) == operands:  # it says what it said the first time
                continue
            before[number] = operands
            if (given := definition.range(operands)) is not None:
                to = definition.to
                found[to] = _union(found[to], given) if to in found else given
    return known


@lru_cache(maxsize=256)
def _constant(operand: str) -> Range:
    """The range of an operand that no instruction of known range sets: a number, or anything."""
    if bits := _BITS.fullmatch(operand):
        (value,) = struct.unpack("f", struct.pack("I", int(bits[1], 16)))
        return _ANY if isnan(value) else (value, value)
    return _ANY  # loaded, an integer, or a predicate


def _holds(kind: str, left: Range, right: Range) -> bool:
    return {
        "gt": left[0] > right[1],
        "ge": left[0] >= right[1],
        "lt": left[1] < right[0],
        "le": left[1] <= right[0],
    }[kind]


def always_true(ptx: str) -> Iterator[tuple[int, str]]:
    """Ordered comparisons of float32 that only NaN makes false: the number of the line, from 0, and `gt`, `ge`, `lt` or
    `le`.

    One whose operands are of no known range, such as what no earlier line sets, is among them.
    """
    lines = ptx.splitlines()
    comparisons = [(number, found) for number, line in enumerate(lines) if (found := _COMPARISON.match(line))]
    if not comparisons:
        return
    known = _ranges(ptx, [found[side] for _, found in comparisons for side in ("left", "right")])
    for number, found in comparisons:
        left, right = known(found["left"]), known(found["right"])
        if left is None or right is None or _holds(found["kind"], left, right):
            yield number, found["kind"]

"""The notation of `numpy.einsum`: which index runs along each dimension of the operands and of the result.

An index is a letter. The dimensions of an ellipsis have indices `...1`, `...2` and so on, counted from the last one.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import NoReturn

from mlirfuse.builder.functions.axes import integer
from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import ArgumentError, ShapeError

Index = str
Term = tuple[Index, ...]

_ELLIPSIS = "..."
_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_GRAMMAR = "write letters, `...`, commas between operands, and at most one `->` before the result"


@dataclass(frozen=True)
class Equation:
    """A parsed equation.

    Attributes:
        text: the equation as messages quote it.
        operands: the index of each dimension, for each operand.
        result: the index of each dimension of the result.
        places: for each operand, the position in `text` of each dimension's index.
    """

    text: str
    operands: tuple[Term, ...]
    result: Term
    places: tuple[tuple[int, ...], ...]

    def mismatch(self, operand: int, dim: int, what: str, hint: str | None = None) -> ShapeError:
        """The error of an extent, with a caret at the index of a dimension."""
        return at_user_line(ShapeError(f"einsum: {what}{quoted(self.text, self.places[operand][dim])}", hint=hint))


def quoted(text: str, place: int, length: int = 1) -> str:
    """The equation on a line of its own, with carets below a place in it."""
    return f"\n    {text}\n    {' ' * place}{'^' * max(1, length)}"


def parse(text: str, ranks: Sequence[int]) -> Equation:
    """The equation of `text` for operands with these numbers of dimensions.

    Raises:
        ArgumentError: the text is no equation, has another number of operands, or its result has an index that no
            operand has, or an index twice.
        ShapeError: an operand has more or fewer dimensions than indices.
    """
    arrow = text.find("->")
    inputs = text if arrow < 0 else text[:arrow]
    terms: list[list[tuple[Index, int]]] = []
    start = 0
    for part in inputs.split(","):
        terms.append(_tokens(text, start, start + len(part)))
        start += len(part) + 1
    if len(terms) != len(ranks):
        _fail(
            f"the equation has {len(terms)} operand(s), and {len(ranks)} were given",
            text,
            _start_of(text, len(ranks)),
            hint="separate the operands' indices by commas",
        )
    named = [
        _with_ellipsis(text, number, term, rank) for number, (term, rank) in enumerate(zip(terms, ranks, strict=True))
    ]
    most = max((sum(index.startswith(_ELLIPSIS) for index, _ in term) for term in named), default=0)
    places = {index: place for term in reversed(named) for index, place in reversed(term)}
    if arrow < 0:
        counts = Counter(index for term in named for index, _ in term if not index.startswith(_ELLIPSIS))
        result = [*_dims_of_ellipsis(most), *sorted(index for index, count in counts.items() if count == 1)]
    else:
        result = _result(text, _tokens(text, arrow + 2, len(text)), most, places)
    return Equation(
        text,
        tuple(tuple(index for index, _ in term) for term in named),
        tuple(result),
        tuple(tuple(place for _, place in term) for term in named),
    )


def from_lists(arguments: Sequence[object]) -> tuple[str, list[object]]:
    """The equation and the operands of the alternating form: operand, list of ints, ..., and the result's list.

    Raises:
        ArgumentError: an entry is no int from 0 to 51 and no `...`, or a list is missing.
    """
    if len(arguments) < 2:
        raise at_user_line(
            ArgumentError("einsum got an operand without its indices", hint="pass an equation first, or lists of ints")
        )
    paired = len(arguments) // 2 * 2
    operands = list(arguments[:paired:2])
    terms = [_letters(entries) for entries in arguments[1:paired:2]]
    result = "->" + _letters(arguments[-1]) if len(arguments) > paired else ""
    return ",".join(terms) + result, operands


def _letters(entries: object) -> str:
    if not isinstance(entries, list | tuple):
        raise at_user_line(
            ArgumentError(
                f"einsum: the indices of an operand are {entries!r}", hint="operands and lists of ints alternate"
            )
        )
    return "".join(_ELLIPSIS if isinstance(e, EllipsisType) else _letter(e) for e in entries)


def _letter(entry: object) -> str:
    number = integer(entry, "einsum: index")
    if not 0 <= number < len(_LETTERS):
        what = f"einsum: index {number} is not from 0 to {len(_LETTERS) - 1}"
        raise at_user_line(ArgumentError(what, hint="ints stand for the letters A to Z and a to z"))
    return _LETTERS[number]


def _tokens(text: str, start: int, end: int) -> list[tuple[Index, int]]:
    """The indices of a term, `...` as one of them, with their positions."""
    found: list[tuple[Index, int]] = []
    position = start
    while position < end:
        character = text[position]
        if text[position : min(end, position + 3)] == _ELLIPSIS:
            if any(index == _ELLIPSIS for index, _ in found):
                _fail("a term has two ellipses", text, position, 3, hint="one `...` stands for all dimensions")
            found.append((_ELLIPSIS, position))
            position += 3
            continue
        if character == ".":
            dots = len(text[position:end]) - len(text[position:end].lstrip("."))
            _fail("this is no ellipsis", text, position, dots, hint="an ellipsis is three dots: ...")
        if character in _LETTERS:
            found.append((character, position))
        elif not character.isspace():
            _fail(f"{character!r} is no index", text, position, hint=_GRAMMAR)
        position += 1
    return found


def _start_of(text: str, operand: int) -> int:
    """Where an operand's indices begin, or the inputs end if the equation does not have so many operands."""
    inputs = text.split("->")[0]
    commas = [place for place, character in enumerate(inputs) if character == ","]
    return commas[operand - 1] if 0 < operand <= len(commas) else len(inputs)


def _with_ellipsis(text: str, number: int, term: list[tuple[Index, int]], rank: int) -> list[tuple[Index, int]]:
    """The indices of an operand's dimensions, those of its ellipsis with names of their own."""
    letters = sum(index != _ELLIPSIS for index, _ in term)
    has_ellipsis = letters != len(term)
    place = term[0][1] if term else min(_start_of(text, number) + (number > 0), len(text) - 1)
    length = term[-1][1] + 1 - place if term else 1
    what = f"operand {number} has {rank} dimension(s), and {letters} indices"
    if letters > rank:
        raise at_user_line(ShapeError(f"einsum: {what}{quoted(text, place, length)}", hint="leave some out"))
    if letters < rank and not has_ellipsis:
        hint = "name every dimension, or write `...` for those to broadcast"
        raise at_user_line(ShapeError(f"einsum: {what}{quoted(text, max(place, 0), length)}", hint=hint))
    named: list[tuple[Index, int]] = []
    for index, at in term:
        named += [(index, at)] if index != _ELLIPSIS else [(d, at) for d in _dims_of_ellipsis(rank - letters)]
    return named


def _dims_of_ellipsis(count: int) -> list[Index]:
    """The indices of an ellipsis' dimensions, which are counted from the last one, as broadcasting does."""
    return [f"{_ELLIPSIS}{d}" for d in range(count, 0, -1)]


def _result(text: str, tokens: list[tuple[Index, int]], most: int, known: dict[Index, int]) -> list[Index]:
    """The indices of the result's dimensions; raises `ArgumentError`."""
    result: list[Index] = []
    for index, place in tokens:
        if index == _ELLIPSIS:
            result += _dims_of_ellipsis(most)
            continue
        if index in result:
            _fail(f"the result has index {index!r} twice", text, place, hint="a diagonal cannot be written to")
        if index not in known:
            letters = sorted(i for i in known if not i.startswith(_ELLIPSIS))
            hint = f"the operands have the indices {', '.join(letters)}" if letters else "no operand has an index"
            _fail(f"index {index!r} of the result is in no operand", text, place, hint=hint)
        result.append(index)
    if most and not any(index == _ELLIPSIS for index, _ in tokens):
        what = f"the result has no ellipsis for the {most} dimension(s) of the operands' ellipses"
        _fail(what, text, text.index("->"), len(text) - text.index("->"), hint="write ... in the result, or letters")
    return result


def _fail(what: str, text: str, place: int, length: int = 1, *, hint: str | None = None) -> NoReturn:
    raise at_user_line(ArgumentError(f"einsum: {what}{quoted(text, place, length)}", hint=hint))

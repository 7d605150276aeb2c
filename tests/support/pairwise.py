"""Combinations of parameters: all of them, or so few that each two values of different parameters still occur together.

A failure that depends on two parameters, such as a dtype and a size, is seen in either case (D. R. Kuhn et al.,
"Software Fault Interactions and Implications for Software Testing", 2004).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest

FULL = os.environ.get("MLIRFUSE_TEST_FULL", "") == "1"
"""Whether tests take all combinations, as in `make test-full`."""


def some(values: Iterable[Any], number: int) -> list[Any]:
    """All values in `make test-full`, else so many of them, the same each time and in the same order."""
    full = list(values)
    return full if FULL else [full[i] for i in sorted(random.Random(0).sample(range(len(full)), number))]


def examples(full: int, some: int) -> int:
    """How many random cases a test takes: `full` in `make test-full`, else `some`."""
    return full if FULL else some


Row = Mapping[str, Any]
"""A value of each parameter."""


def combined(
    parameters: Mapping[str, Iterable[Any]],
    allowed: Callable[[Row], bool] = lambda _: True,
    *,
    turns: Mapping[str, Iterable[Any]] | None = None,
) -> pytest.MarkDecorator:
    """Parametrises a test with combinations of values: all in `make test-full`, else those of `pairwise`.

    Args:
        parameters: the values of each parameter, of which the first is first in a test's name; of a mapping its keys.
            The values of `"m, n"` are pairs, whose numbers stay together.
        allowed: whether a test takes a combination of some or all parameters; must not depend on more than two.
        turns: more parameters, whose values take turns over the combinations of the others: they add no tests to
            `make test`.
    """
    values, turning = ({name: list(of) for name, of in each.items()} for each in (parameters, turns or {}))
    if FULL:
        rows = every(values | turning, allowed)
    else:
        rows = in_turn(every(values, allowed) if len(values) < 3 else pairwise(values, allowed), turning)
    names = [part.strip() for name in values | turning for part in name.split(",")]
    return pytest.mark.parametrize(names, [_flat(row) for row in rows], ids=_id)


def _flat(row: Row) -> tuple[Any, ...]:
    return tuple(part for name, value in row.items() for part in (value if "," in name else (value,)))


def _id(value: Any) -> str | None:
    """A value in a test's name; None where pytest's own text is as good."""
    return None if callable(value) else str(value)


def every(parameters: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool] = lambda _: True) -> Iterator[Row]:
    """All combinations that are allowed."""
    rows = (dict(zip(parameters, values, strict=True)) for values in product(*parameters.values()))
    return (row for row in rows if allowed(row))


def in_turn(rows: Iterable[Row], turns: Mapping[str, Sequence[Any]]) -> Iterator[Row]:
    """Combinations with a value more of each parameter of `turns`: the one that the row's values have met least."""
    met: Counter[tuple[str, int, str, int]] = Counter()
    for row in rows:
        chosen = dict(row)
        for name, values in turns.items():
            pairs = [[(other, id(chosen[other]), name, v) for other in chosen] for v in range(len(values))]
            turn = min(range(len(values)), key=lambda v: (sum(met[pair] for pair in pairs[v]), met["", 0, name, v], v))
            met.update([*pairs[turn], ("", 0, name, turn)])
            chosen[name] = values[turn]
        yield chosen


def pairwise(parameters: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool] = lambda _: True) -> Iterator[Row]:
    """Combinations among which each two values of different parameters occur, where any allowed combination has both.

    Greedy, and the same for the same parameters. `allowed` must not depend on more than two parameters.
    """
    names = list(parameters)
    uncovered = {
        (a, b): {
            (x, y)
            for x, y in product(range(len(parameters[a])), range(len(parameters[b])))
            if allowed({a: parameters[a][x], b: parameters[b][y]})
        }
        for a, b in combinations(names, 2)
    }
    rotation = 0
    while pair := max(uncovered, key=lambda pair: len(uncovered[pair])):
        if not uncovered[pair]:
            return
        row = dict(zip(pair, min(uncovered[pair]), strict=True))
        uncovered[pair].discard(tuple(row.values()))  # also where no third value goes with the two
        for name in names:
            if name not in row:
                rotation += 1
                row |= _best(name, row, parameters, uncovered, allowed, rotation)
        if len(row) < len(names):
            continue
        for a, b in combinations(names, 2):
            uncovered[a, b].discard((row[a], row[b]))
        yield {name: parameters[name][row[name]] for name in names}


def _best(
    name: str,
    row: Mapping[str, int],
    parameters: Mapping[str, Sequence[Any]],
    uncovered: Mapping[tuple[str, str], set[tuple[int, int]]],
    allowed: Callable[[Row], bool],
    rotation: int,
) -> dict[str, int]:
    """The value that adds most pairs with the row's values, rotating over ties; None if no value is allowed."""
    chosen = {other: parameters[other][value] for other, value in row.items()}
    count = len(parameters[name])
    best: tuple[int, int] | None = None
    for offset in range(count):
        value = (rotation + offset) % count
        if not all(allowed({name: parameters[name][value], other: v}) for other, v in chosen.items()):
            continue
        new = sum((row[a], value) in pairs for (a, b), pairs in uncovered.items() if b == name and a in row)
        new += sum((value, row[b]) in pairs for (a, b), pairs in uncovered.items() if a == name and b in row)
        if best is None or new > best[0]:
            best = new, value
    return {} if best is None else {name: best[1]}

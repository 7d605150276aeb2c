"""What a kernel to digest is, and how a set of them is sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import mlirfuse as mf

TARGETS: Mapping[str, tuple[str, ...]] = {
    "ampere": ("sm_80", "sm_87"),
    "consumer": ("sm_86", "sm_89"),
    "hopper": ("sm_90",),
    "hopper_specific": ("sm_90a",),
    "blackwell": ("sm_100", "sm_100a", "sm_103", "sm_103a"),
    "thor": ("sm_110", "sm_110a"),
    "workstation": ("sm_120", "sm_120a", "sm_121", "sm_121a"),
}
"""By kind of architecture, the targets that take turns in a sample. Another target, or another value of any parameter,
changes the sample: compare digests that the same version of this package made."""

FLOAT8_KINDS = ("consumer", "hopper", "hopper_specific", "blackwell", "thor", "workstation")


@dataclass(frozen=True)
class Case:
    """A function to compile.

    Attributes:
        name: unique among all cases.
        target: what it is compiled for.
        fn: the function.
        specs: of its arguments.
        options: of `mf.fuse`, without the target.
    """

    name: str
    target: str
    fn: Callable[..., Any]
    specs: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)


Row = Mapping[str, Any]
"""A value of each parameter."""


def pairwise(parameters: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool] = lambda _: True) -> Iterator[Row]:
    """Combinations among which each two values of different parameters meet, where any allowed combination has both.

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
    turn = 0
    while pair := max(uncovered, key=lambda pair: len(uncovered[pair])):
        if not uncovered[pair]:
            return
        row = dict(zip(pair, min(uncovered[pair]), strict=True))
        uncovered[pair].discard(tuple(row.values()))  # also where no third value goes with the two
        for name in names:
            if name not in row:
                turn += 1
                row |= _best(name, row, parameters, uncovered, allowed, turn)
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
    turn: int,
) -> dict[str, int]:
    """The value that meets most of the row's for the first time; of equals, one after the other. None if none fits."""
    chosen = {other: parameters[other][value] for other, value in row.items()}
    count = len(parameters[name])
    best: tuple[int, int] | None = None
    for offset in range(count):
        value = (turn + offset) % count
        if not all(allowed({name: parameters[name][value], other: v}) for other, v in chosen.items()):
            continue
        new = sum((row[a], value) in pairs for (a, b), pairs in uncovered.items() if b == name and a in row)
        new += sum((value, row[b]) in pairs for (a, b), pairs in uncovered.items() if a == name and b in row)
        if best is None or new > best[0]:
            best = new, value
    return {} if best is None else {name: best[1]}


def sample(
    group: str,
    parameters: Mapping[str, Sequence[Any]],
    make: Callable[[Row], tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]],
    allowed: Callable[[Row], bool] = lambda _: True,
    float8: Callable[[Row], bool] = lambda _: False,
) -> Iterator[Case]:
    """Cases of a group, pairwise over its parameters and the kinds of architecture.

    Args:
        group: the first part of the cases' names.
        parameters: values by parameter; their texts are the other parts of the names.
        make: function, specs and options of a combination.
        allowed: whether values go together; it is given two parameters at a time, `architecture` among them.
        float8: whether a combination needs float8, which of the kind `consumer` only some targets have.
    """
    turns = dict.fromkeys(TARGETS, 0)
    for row in pairwise({**parameters, "architecture": list(TARGETS)}, allowed):
        targets = TARGETS[row["architecture"]]
        target = targets[turns[row["architecture"]] % len(targets)]
        turns[row["architecture"]] += 1
        target = "sm_89" if target == "sm_86" and float8(row) else target
        fn, specs, options = make(row)
        yield Case("-".join([group, *(_text(row[name]) for name in parameters), target]), target, fn, specs, options)


def _text(value: Any) -> str:
    if callable(value):
        return value.__name__
    if isinstance(value, tuple):
        return "x".join(_text(v) for v in value)
    return "dynamic" if value is None else str(value)


def tensors(dtype: Any, *shapes: Iterable[Any]) -> list[mf.TensorSpec]:
    """Specs of contiguous arrays of one dtype."""
    return [mf.TensorSpec(tuple(shape), dtype) for shape in shapes]

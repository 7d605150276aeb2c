"""Random programs from a seed: 3 to 12 operations over mixed axes, on 16 to 256 MB of arguments.

Values stay near 1 whatever is composed, so that a result that is wrong differs by more than rounding: exponentials and
quotients are of bounded numbers, sums are means.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from survey_programs.program import Program

OPERATIONS = range(3, 13)
LARGEST_ROW = 1 << 19
"""Elements behind one index of the first dimension, at most."""

MEGABYTES = (16, 24, 32, 48, 64, 96, 128, 192, 256)
DTYPES = ("bf16", "bf16", "bf16", "f16", "f32", "f32")
BYTES = {"bf16": 2, "f16": 2, "f32": 4}
INNERMOST = (64, 96, 128, 200, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 16384)
MIDDLE = (2, 3, 4, 8, 12, 16, 31, 32, 64, 128, 196, 256, 512)

UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda xp, x: xp.tanh(x),
    "sigmoid": lambda xp, x: xp.sigmoid(x),
    "abs": lambda xp, x: xp.abs(x),
    "gelu": lambda xp, x: x * xp.sigmoid(1.702 * x),
    "relu": lambda xp, x: xp.maximum(x, 0.0),
    "bounded exp": lambda xp, x: xp.exp(-xp.abs(x)),
    "clip": lambda xp, x: xp.clip(x, -1.5, 1.5),
    "log1p": lambda xp, x: xp.log1p(xp.abs(x)),
    "scale": lambda xp, x: 0.75 * x + 0.25,
    "root": lambda xp, x: xp.sqrt(xp.abs(x) + 0.5),
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda xp, x, y: x + y,
    "subtract": lambda xp, x, y: x - y,
    "damped product": lambda xp, x, y: x * xp.tanh(y),
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "quotient": lambda xp, x, y: x / (1.0 + xp.abs(y)),
    "select": lambda xp, x, y: xp.where(y > 0.25, x, 0.5 * y),
}
REDUCTIONS: dict[str, Callable[[Any, Any, tuple[int, ...]], Any]] = {
    "mean": lambda xp, x, axes: xp.mean(x, axis=axes, keepdims=True),
    "max": lambda xp, x, axes: xp.max(x, axis=axes, keepdims=True),
    "rms": lambda xp, x, axes: xp.sqrt(xp.mean(x * x, axis=axes, keepdims=True) + 1e-3),
    "deviation": lambda xp, x, axes: xp.mean(
        xp.abs(x - xp.mean(x, axis=axes, keepdims=True)), axis=axes, keepdims=True
    ),
    "sum of exponentials": lambda xp, x, axes: xp.log(xp.mean(xp.exp(xp.clip(x, -4.0, 4.0)), axis=axes, keepdims=True)),
}


@dataclass(frozen=True)
class Step:
    """An operation on values by their positions: the arguments, then the steps' results. `axes` of a reduction."""

    kind: str
    name: str
    operands: tuple[int, ...]
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Random:
    """A formula as data; called as those of the table are, and named as functions are.

    Attributes:
        steps: in order.
        results: positions of what is returned.
        order: of the dimensions of the last result, unless empty.
        dtype: of the results: `bf16`, `f16` or `f32`.
    """

    __name__ = "random"  # of functions; no field

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    order: tuple[int, ...]
    dtype: str

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        """The results, as one array or a tuple; everything in between is float32."""
        values = [xp.astype(x, xp.float32) for x in arrays]
        for step in self.steps:
            values.append(_evaluated(xp, step, [values[position] for position in step.operands]))
        found = [values[position] for position in self.results]
        if self.order:
            found[-1] = xp.permute_dims(found[-1], self.order)
        narrow = {"bf16": xp.bfloat16, "f16": xp.float16, "f32": xp.float32}[self.dtype]
        found = [xp.astype(x, narrow) for x in found]
        return found[0] if len(found) == 1 else tuple(found)

    def __str__(self) -> str:
        return "; ".join(f"{s.name}{list(s.axes) or ''} {','.join(map(str, s.operands))}" for s in self.steps)


def random_programs(count: int, seed: int = 0) -> list[Program]:
    """Programs that depend on the seed and their numbers alone."""
    return [random_program(random.Random(f"{seed} {number}"), f"random {seed}.{number}") for number in range(count)]


def random_program(rng: random.Random, label: str) -> Program:
    """One program: an array and up to four that have its shape, or broadcast to it."""
    shape = _shape(rng)
    names = "ABCD"[: len(shape)]
    dtypes, kept = [], []
    for number in range(rng.randint(1, 4)):
        full = number == 0 or rng.random() < 0.4
        dtypes.append(rng.choice(DTYPES))
        kept.append(tuple(full or rng.random() < 0.4 for _ in shape))
    bytes_of_row = sum(
        prod(n for n, k in zip(shape[1:], ks[1:], strict=True) if k) * BYTES[t] for t, ks in _full(dtypes, kept)
    )
    rows = max(1, rng.choice(MEGABYTES) * 1_000_000 // bytes_of_row)
    sizes = dict(zip(names, (rows, *shape[1:]), strict=True))
    text = " ".join(
        f"x{n}:{t}[{','.join(a if k else '1' for a, k in zip(names, ks, strict=True))}]"
        for n, (t, ks) in enumerate(zip(dtypes, kept, strict=True))
    )
    return Program("random", _formula(rng, kept), text, sizes, label=label)


def _full(dtypes: list[str], kept: list[tuple[bool, ...]]) -> Iterator[tuple[str, tuple[bool, ...]]]:
    return ((t, ks) for t, ks in zip(dtypes, kept, strict=True) if ks[0])


def _shape(rng: random.Random) -> tuple[int, ...]:
    """Extents of two to four dimensions, whose first is chosen later."""
    rank = rng.choice((2, 2, 3, 3, 4))
    shape = (0, *(rng.choice(MIDDLE) for _ in range(rank - 2)), rng.choice(INNERMOST))
    return shape if prod(shape[1:]) <= LARGEST_ROW else _shape(rng)


def _formula(rng: random.Random, kept: list[tuple[bool, ...]]) -> Random:
    """Steps, each of which uses the last value or joins an argument; the last value is as large as the arguments."""
    values, steps, unused = list(kept), [], list(range(1, len(kept)))
    rank, last = len(kept[0]), 0
    wanted = rng.choice(OPERATIONS)
    while len(steps) + len(unused) < wanted or unused:
        kind = rng.choices(("unary", "binary", "reduce"), (3, 4, 3))[0]
        room = wanted - len(steps) - len(unused)
        if unused and (kind == "binary" or room < 1):
            step = Step("binary", rng.choice(list(BINARY)), (last, unused.pop(0)))
        elif kind == "reduce" and any(values[last]) and room > 1:
            present = [d for d in range(rank) if values[last][d]]
            axes = tuple(sorted(rng.sample(present, rng.randint(1, len(present)))))
            steps.append(Step("reduce", rng.choice(list(REDUCTIONS)), (last,), axes))
            values.append(tuple(k and d not in axes for d, k in enumerate(values[last])))
            step = Step("binary", rng.choice(("add", "subtract", "quotient")), (last, len(values) - 1))
        elif kind == "binary" and last:
            step = Step("binary", rng.choice(list(BINARY)), (last, rng.randrange(last)))
        else:
            step = Step("unary", rng.choice(list(UNARY)), (last,))
        steps.append(step)
        values.append(tuple(any(values[p][d] for p in step.operands) for d in range(rank)))
        last = len(values) - 1
    results = (last,)
    statistics = [len(kept) + n for n, step in enumerate(steps) if step.kind == "reduce"]
    if statistics and rng.random() < 0.3:
        results = (rng.choice(statistics), last)
    order = tuple(rng.sample(range(rank), rank)) if rng.random() < 0.15 else ()
    return Random(tuple(steps), results, order, rng.choice(DTYPES))


def _evaluated(xp: Any, step: Step, operands: list[Any]) -> Any:
    if step.kind == "unary":
        return UNARY[step.name](xp, *operands)
    if step.kind == "binary":
        return BINARY[step.name](xp, *operands)
    return REDUCTIONS[step.name](xp, *operands, step.axes)

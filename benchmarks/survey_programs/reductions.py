"""Sums and maxima over every subset of the axes of arrays of two to five dimensions, and of every aspect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from survey_programs.program import Function, Program

SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((8192, 8192), (65536, 512), (1000000, 16), (128, 65536), (64, 1048576), (65537, 1023), (2, 1 << 25)),
    3: ((64, 512, 1024), (8, 8192, 1024), (65536, 8, 128), (64, 3136, 64), (512, 3136, 40)),
    4: ((64, 256, 56, 56), (32, 64, 128, 256), (16, 33, 65, 1000)),
    5: ((16, 32, 32, 32, 64), (4, 128, 3, 256, 96), (8, 7, 64, 64, 256)),
}
"""Arrays of 8 to 128 million elements. Two dimensions are reduced at every shape, more at each in turn."""


def total(axes: tuple[int, ...]) -> Function:
    """The sum over these axes, in float32."""

    def sum_over(xp: Any, x: Any) -> Any:
        return xp.sum(x, axis=axes, dtype=xp.float32)

    return sum_over


def largest(axes: tuple[int, ...]) -> Function:
    """The maximum over these axes."""

    def max_over(xp: Any, x: Any) -> Any:
        return xp.max(x, axis=axes)

    return max_over


def average(axes: tuple[int, ...]) -> Function:
    """The mean over these axes, in float32."""

    def mean_over(xp: Any, x: Any) -> Any:
        return xp.mean(xp.astype(x, xp.float32), axis=axes)

    return mean_over


def reductions() -> Iterator[Program]:
    """Sums and maxima: both over each subset of two dimensions and the middle of three, else in turns."""
    turn = 0
    for rank, shapes in SHAPES.items():
        for axes in (a for count in range(1, rank + 1) for a in combinations(range(rank), count)):
            if rank == 2 or (rank, axes) == (3, (1,)):
                yield from (reduction(make, axes, shape) for shape in shapes for make in (total, largest))
            else:
                yield reduction((largest, total)[turn % 2], axes, shapes[turn % len(shapes)])
                turn += 1
    for count in (1 << 26, 10_000_019, 1 << 18):
        yield reduction(total, (0,), (count,), "f32")
    for axes in ((2, 3), (0, 2, 3)):
        yield reduction(average, axes, (64, 256, 56, 56))


def reduction(
    make: Callable[[tuple[int, ...]], Function], axes: tuple[int, ...], shape: tuple[int, ...], dtype: str = "bf16"
) -> Program:
    """A reduction of one array, whose dimensions are named A, B, ..."""
    fn = make(axes)
    sizes = dict(zip("ABCDE", shape, strict=False))
    label = f"{fn.__name__.removesuffix('_over')} {','.join(map(str, axes))}"
    return Program("reductions", fn, f"x:{dtype}[{','.join(sizes)}]", sizes, label=label)

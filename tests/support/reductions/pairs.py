"""Reductions of which no array varies along the whole space, and their kernels with register tiles of results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.rows.register_tiles import register_tile_schedules
from mlirfuse.target import TARGETS
from tests.support.reductions.streamed import scheduled

FORMS = {
    "taxicab": lambda xp, a, b, axes: xp.sum(xp.abs(a - b), axis=axes),
    "squares": lambda xp, a, b, axes: xp.sum(xp.square(a - b), axis=axes),
    "tropical": lambda xp, a, b, axes: xp.max(a + b, axis=axes),
    "larger": lambda xp, a, b, axes: xp.sum(xp.where(a < b, a, 2 * b), axis=axes) + 1,
    "two": lambda xp, a, b, axes: (xp.sum(xp.maximum(a, b), axis=axes), xp.min(a - b, axis=axes)),
}


@dataclass(frozen=True)
class Pairs:
    """Two arrays of small integers, each broadcast along dimensions of a space that the other has.

    Attributes:
        extents: of the space.
        lacking: for each array the dimensions that it lacks.
        axes: that are reduced.
        dtype: of both.
        form: what is computed, of `FORMS`.
    """

    extents: tuple[int, ...]
    lacking: tuple[tuple[int, ...], tuple[int, ...]]
    axes: tuple[int, ...]
    dtype: str
    form: str

    def arrays(self) -> list[np.ndarray]:
        """Both arrays, with extents of 1 where they are broadcast."""
        rng = np.random.default_rng(sum(self.extents))
        return [
            rng.integers(-3, 4, [1 if d in lacking else n for d, n in enumerate(self.extents)]).astype(self.dtype)
            for lacking in self.lacking
        ]

    @property
    def function(self) -> Any:
        """The formula, over mlirfuse or NumPy."""
        axes, form = self.axes, FORMS[self.form]

        def pairs(a: Any, b: Any, xp: Any = mf) -> Any:
            return form(xp, a, b, axes)

        return pairs

    def expected(self) -> tuple[np.ndarray, ...]:
        """The results by NumPy."""
        results = self.function(*(a.astype(np.float64) for a in self.arrays()), np)
        return results if isinstance(results, tuple) else (results,)


def random_pairs(seed: int, extents: tuple[int, ...] = (2, 3, 5, 8, 9, 16, 20, 33)) -> Pairs:
    """A space of three or four dimensions, of which one or two are reduced."""
    rng = random.Random(seed)
    rank = rng.choice((3, 3, 4))
    shape = tuple(rng.choice(extents) for _ in range(rank))
    dims = list(range(rank))
    first, second = rng.sample(dims, 2)
    reduced = rng.sample([d for d in dims if d not in (first, second)], rng.randint(1, rank - 2))
    if rng.random() < 0.2:
        reduced = [first]  # what only one of them has
    return Pairs(
        shape,
        ((first,), (second,)),
        tuple(sorted(reduced)),
        rng.choice(("float32", "float16", "int32")),
        rng.choice(list(FORMS)),
    )


def register_tile_modules(
    case: Pairs, count: int, stage: str, *, dynamic: bool, seed: int = 0
) -> Iterator[tuple[Any, Any]]:
    """(schedule, module) of some register tiles of a case's kernel, chosen at random; none where it has several.

    Args:
        case: the reduction.
        count: schedules, at most.
        stage: `tile` or `gpu`.
        dynamic: whether all extents that are not reduced are known at run time.
        seed: of the choice.
    """
    kept = set(range(len(case.extents))) - set(case.axes)
    shapes = [
        tuple(None if dynamic and d in kept and n > 1 else n for d, n in enumerate(a.shape)) for a in case.arrays()
    ]
    lowered = mf.fuse(case.function, target="sm_90a").lower(*(mf.TensorSpec(s, case.dtype) for s in shapes)).module
    with lowered.context:
        run_pipeline(lowered, pipeline.named("fuse-graph-pipeline"))
        found = list(kernels(lowered.operation))
        if len(found) != 1:
            return
        schedules = list(register_tile_schedules(problem_of(found[0], *kernel_space(found[0])), TARGETS["sm_90a"]))
        for schedule in random.Random(seed).sample(schedules, min(count, len(schedules))):
            yield schedule, scheduled(lowered, schedule, stage)

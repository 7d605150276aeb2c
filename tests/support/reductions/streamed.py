"""Reductions over random axes of random arrays, and their kernels with schedules that stream what is reduced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.rows.streamed import streamed_schedules
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS

EXTENTS = (2, 3, 4, 5, 7, 8, 16, 24, 33, 40)
DTYPES = ("float32", "float16", "int32")
FORMS = ("sum", "max", "sums", "centred")


@dataclass(frozen=True)
class Case:
    """A reduction of an array of small integers, so that results are exact in any order of additions.

    Attributes:
        shape: of the array.
        order: the memory order of its dimensions, from the outermost on.
        axes: that are reduced.
        dtype: of the array.
        form: what is computed, one of `FORMS`.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: str
    form: str

    def array(self) -> np.ndarray:
        """The array, in its memory order."""
        values = np.random.default_rng(sum(self.shape)).integers(-3, 4, [self.shape[d] for d in self.order])
        return values.astype(self.dtype).transpose(np.argsort(self.order))

    def function(self) -> Any:
        """The formula, over mlirfuse or NumPy."""

        def total(x: Any, xp: Any = mf) -> Any:
            wide = xp.int32 if self.dtype == "int32" else xp.float32
            return xp.sum(x, axis=self.axes, dtype=wide)

        def largest(x: Any, xp: Any = mf) -> Any:
            return xp.max(x, axis=self.axes)

        def several(x: Any, xp: Any = mf) -> Any:
            wide = xp.int32 if self.dtype == "int32" else xp.float32
            return xp.sum(x, axis=self.axes, dtype=wide), xp.sum(x * x, axis=self.axes, dtype=wide)

        def centred(x: Any, xp: Any = mf) -> Any:
            return x - xp.max(x, axis=self.axes, keepdims=True)

        return {"sum": total, "max": largest, "sums": several, "centred": centred}[self.form]

    def expected(self) -> tuple[np.ndarray, ...]:
        """The results by NumPy."""
        results = self.function()(self.array(), np)
        return results if isinstance(results, tuple) else (results,)


def random_case(seed: int, largest: int = 1 << 14) -> Case:
    """A case of two to four dimensions, of which one to all are reduced."""
    rng = random.Random(seed)
    while True:
        rank = rng.choice((2, 3, 3, 4))
        shape = tuple(rng.choice(EXTENTS) for _ in range(rank))
        if np.prod(shape) <= largest:
            break
    order = list(range(rank))
    if rng.random() < 0.3:
        rng.shuffle(order)
    axes = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))
    return Case(shape, tuple(order), axes, rng.choice(DTYPES), rng.choice(FORMS))


def streamed_modules(case: Case, count: int, stage: str, *, dynamic: bool, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """(schedule, module) of some streamed schedules of a case's only kernel, chosen at random.

    Args:
        case: the reduction.
        count: schedules, at most.
        stage: `tile` or `gpu`.
        dynamic: whether the leading extents are known at run time, as far as the reduction allows.
        seed: of the choice.
    """
    lowered = _lowered(case, dynamic)
    with lowered.context:
        run_pipeline(lowered, pipeline.named("fuse-graph-pipeline"))
        found = list(kernels(lowered.operation))
        if len(found) != 1:
            return
        schedules = list(streamed_schedules(problem_of(found[0], *kernel_space(found[0])), TARGETS["sm_90a"]))
        for schedule in random.Random(seed).sample(schedules, min(count, len(schedules))):
            yield schedule, scheduled(lowered, schedule, stage)


def _lowered(case: Case, dynamic: bool) -> ir.Module:
    """The traced function."""
    array = case.array()
    layout: dict[str, Any] = {}
    if not array.flags.c_contiguous:
        steps = [n for n in array.strides if n != array.itemsize]
        layout = {"strides": tuple(1 if n == array.itemsize else None for n in array.strides), "align": gcd(16, *steps)}
    fn = mf.fuse(case.function(), target="sm_90a")
    if dynamic:
        leading = tuple(None if d < len(case.shape) - 1 else n for d, n in enumerate(case.shape))
        try:
            return fn.lower(mf.TensorSpec(leading, case.dtype, **layout)).module
        except mf.MlirFuseError:  # the reduction needs extents as numbers
            pass
    return fn.lower(mf.TensorSpec(case.shape, case.dtype, **layout)).module


def scheduled(module: ir.Module, schedule: Schedule, stage: str) -> ir.Module:
    """A copy of the module whose kernel has another schedule, at a later stage."""
    with module.context:
        copy = ir.Module.parse(str(module))
    (kernel,) = kernels(copy.operation)
    with copy.context:
        kernel.attributes[SCHEDULE] = schedule.attribute()
        passes = {"tile": pipeline.TILE, "gpu": f"{pipeline.TILE},{pipeline.GPU}"}[stage]
        run_pipeline(copy, pipeline.stage(passes))
    return copy

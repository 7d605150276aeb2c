"""Statistics over random axes, and modules in which parts of a dimension are reduced by a kernel of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir

import mlirfuse as mf
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline

EXTENTS = (4, 6, 8, 12, 15, 16, 24, 40)


def log_sum_exp(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    largest = xp.max(x, axis=axes, keepdims=True)
    return largest + xp.log(xp.sum(xp.exp(x - largest), axis=axes, keepdims=True))


def variance(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """The mean square of deviations from the mean."""
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.mean(centred * centred, axis=axes, keepdims=True)


def several(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """Mean, standard deviation and maximum."""
    return xp.mean(x, axis=axes), xp.sqrt(variance(x, axes, xp)), xp.max(x, axis=axes)


def largest_first(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """Maximum, then the statistics that are joint reductions."""
    return xp.max(x, axis=axes), variance(x, axes, xp), log_sum_exp(x, axes, xp)


def extremes(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """Minimum, maximum, and the sum of squares less 1."""
    return xp.min(x, axis=axes), xp.max(x, axis=axes), xp.sum(x * x, axis=axes) - 1.0


def with_gradient(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    """Sums and maxima of what is a result too, in part."""
    y = xp.tanh(x - 3.0)
    return xp.sum(y * y, axis=axes), y * (1.0 - y * y), xp.max(y, axis=axes)


@dataclass(frozen=True)
class PartsCase:
    """A statistic of an array.

    Attributes:
        form: one of the functions above.
        shape: of the array.
        axes: that are reduced.
        infinite: whether the first half of the array is minus infinity.
        sliced: whether that is every third row, or plane, of what is given, and the last third of each.
        rolled: whether rows, or planes, are moved by one, so that they are gathered.
    """

    form: Callable[..., Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    infinite: bool
    sliced: bool = False
    rolled: bool = False

    def array(self) -> np.ndarray:
        """Numbers around 3, so that a variance that cancelled would show."""
        x = (np.random.default_rng(1).standard_normal(self.given) + 3).astype(np.float32)
        if self.infinite:
            x[: self.given[0] // 2] = -np.inf
        return x

    @property
    def given(self) -> tuple[int, ...]:
        """The shape of the array that the function takes."""
        return (3 * self.shape[0], *self.shape[1:-1], 3 * self.shape[-1]) if self.sliced else self.shape

    def part(self, x: Any) -> Any:
        """The array that is reduced, of the one that is given."""
        if self.rolled:
            xp = np if isinstance(x, np.ndarray) else mf
            return xp.concat([x[-1:], x[:-1]], axis=0)
        return x[1::3, ..., 2 * self.shape[-1] :] if self.sliced else x

    def expected(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results in double precision."""
        with np.errstate(all="ignore"):
            results = self.form(self.part(x).astype(np.float64), self.axes, np)
        return results if isinstance(results, tuple) else (results,)

    def function(self) -> Any:
        """The statistic over mlirfuse."""

        def statistic(x: Any) -> Any:
            return self.form(self.part(x), self.axes, mf)

        return statistic


def random_parts_case(seed: int, extents: tuple[int, ...] = EXTENTS) -> PartsCase:
    """A statistic of one to three dimensions, over one to all of them."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 3, 3))
    shape = tuple(rng.choice(extents) for _ in range(rank))
    axes = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))
    form = rng.choice((log_sum_exp, variance, several, largest_first, extremes, with_gradient))
    infinite = form is log_sum_exp and rng.random() < 0.5
    part = rng.random() if rank > 1 else 1.0
    return PartsCase(form, shape, axes, infinite, sliced=part < 0.25, rolled=0.25 <= part < 0.5)


def module_in_parts(case: PartsCase, parts: int, *, dynamic: bool) -> tuple[ir.Module, bool]:
    """The statistic at the `gpu` stage, and whether some kernel of it reduces parts.

    Args:
        case: the statistic.
        parts: of the first reduced dimension that has so many.
        dynamic: whether leading extents that are kept are known at run time.
    """
    last = len(case.shape) - 1
    kept = {d for d in range(last) if d not in case.axes and not (case.sliced and d == 0)}
    run_time = dynamic and not case.rolled  # what is joined has static extents
    shape = tuple(None if run_time and d in kept else n for d, n in enumerate(case.given))
    module = mf.fuse(case.function(), target="sm_90a").lower(mf.TensorSpec(shape, "float32")).module
    text = pipeline.NAMED["fuse-gpu-pipeline"].replace("fuse-split-parts", f"fuse-split-parts{{{{parts={parts}}}}}")
    with module.context:
        run_pipeline(module, pipeline.stage(text))
    return module, "_parts" in str(module)

"""Schedules of products that were measured on an H200 (`benchmarks/results/`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, gcd, log
from pathlib import Path
from statistics import correlation, fmean
from typing import Any

import mlirfuse as mf
from mlirfuse.schedule.contractions.families.mma import mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.schedule.parts.contraction import SLICED
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.dtypes import dtype_of

RESULTS = Path(mf.__file__).parent.parent / "benchmarks" / "results"

CLOSE = 1.25
"""Ratio of a prediction to a measurement, or the other way round, up to which it is close."""


@dataclass(frozen=True)
class Measured:
    """A product, whether no constant was set by it, and the microseconds of some of its schedules."""

    problem: ContractionProblem
    held_out: bool
    schedules: tuple[tuple[Schedule, float], ...]


@dataclass(frozen=True)
class Figures:
    """How good predictions are.

    Attributes:
        close: share of schedules within `CLOSE`.
        rank: rank correlation of a product's schedules, the mean over products.
        choice: time of the schedule with the least prediction to the least time, the geometric mean over products.
    """

    close: float
    rank: float
    choice: float


def measured(name: str = "product_candidates") -> Iterator[Measured]:
    """All products of a file."""
    table = json.loads((RESULTS / f"{name}-h200.json").read_text())
    for row in table["rows"]:
        problem = _problem(row["m"], row["n"], row["k"], row["form"], dtype_of(row["dtype"]))
        named = (dict(zip(table["columns"], values, strict=True)) for values in row["candidates"])
        schedules = tuple((_schedule(problem, values), values["microseconds"]) for values in named)
        yield Measured(problem, row["held_out"], schedules)


def figures(products: Sequence[Measured], predict: Callable[[Schedule, ContractionProblem], float]) -> Figures:
    """Of predictions in microseconds."""
    close, ranks, choices = [], [], []
    for product in products:
        times = [time for _, time in product.schedules]
        predicted = [predict(schedule, product.problem) for schedule, _ in product.schedules]
        close += [abs(log(p / t)) < log(CLOSE) for p, t in zip(predicted, times, strict=True)]
        ranks.append(correlation(_ranks(predicted), _ranks(times)))
        choices.append(log(times[predicted.index(min(predicted))] / min(times)))
    return Figures(fmean(close), fmean(ranks), exp(fmean(choices)))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(range(len(values)), key=lambda i: values[i])
    return [float(rank) for _, rank in sorted(zip(ordered, range(len(values)), strict=True))]


def _problem(m: int, n: int, k: int, form: str, element: mf.DType) -> ContractionProblem:
    k_contiguous = (form[0] == "n", form[1] == "t")
    rows = [k if inner else outer for inner, outer in zip(k_contiguous, (m, n), strict=True)]
    row_bytes = gcd(16, *(row * element.bytes for row in rows))
    return ContractionProblem((), m, n, k, element, mf.float32, row_bytes, k_contiguous)


def _schedule(problem: ContractionProblem, values: dict[str, Any]) -> Schedule:
    m, n, k, flags = values["tile_m"], values["tile_n"], values["k"], values["flags"]
    shared = {"stages": values["stages"], "split": values["split"]}
    row_bytes = k * problem.element.bytes
    if values["instruction"] == "mma":
        schedule = mma_schedule(problem, m, n, step_bytes=row_bytes, **shared)
    else:
        atoms, groups = row_bytes // SWIZZLE_BYTES, values["consumer_groups"]
        schedule = wgmma_schedule(problem, m, n, swapped="t" in flags, atoms=atoms, consumer_groups=groups, **shared)
    assert schedule.contraction is not None
    contraction = replace(
        schedule.contraction,
        persistent="p" in flags,
        raster=values["raster"],
        cluster=values["cluster"],
        streamed="s" in flags,
        reduction=values["reduction"] or schedule.contraction.reduction,
    )
    schedule = replace(schedule, contraction=contraction)
    return with_slices(schedule, contraction.reduction) if contraction.reduction in SLICED else schedule

"""Choosing a contraction's schedule: a pure function of (problem, target)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from mlirfuse.schedule.contraction import ContractionProblem, ContractionSchedule
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

TENSOR_TYPES = ("float16", "bfloat16")

STEP_BYTES = 64
"""Bytes of one row of a factor in one step along k: two instructions deep in 16-bit types."""

PANEL_BYTES = 128
"""Bytes of a row that `wgmma` takes from swizzled shared memory."""

FMA_STEP = 32
"""Elements of k in one step of scalar products: near the root of common extents, which keeps sums of sums accurate."""

MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))
FMA_TILES = ((128, 128), (64, 64), (32, 32), (16, 32))

UNKNOWN_EXTENT = 4096
"""What a dynamic extent is taken to be."""


def choose_contraction(problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with the least estimated time."""
    return min(candidates(problem), key=lambda s: contraction_cost(s, problem, target))


def candidates(problem: ContractionProblem) -> Iterator[Schedule]:
    """Every schedule that is worth estimating."""
    if problem.element.name in TENSOR_TYPES:
        for m, n in MMA_TILES:
            yield mma_schedule(problem, m, n)
        return
    for m, n in FMA_TILES:
        yield fma_schedule(problem, m, n)


def contraction_cost(schedule: Schedule, problem: ContractionProblem, target: Target) -> float:
    """Time in arbitrary units: rounds of blocks over the SMs, each as long as its tile's traffic and products."""
    assert schedule.contraction is not None
    *_, m, n = schedule.tile
    extents = [*problem.batch, problem.m, problem.n]
    tiles = prod(-(-(extent or UNKNOWN_EXTENT) // size) for extent, size in zip(extents, schedule.tile, strict=True))
    rounds = -(-tiles * schedule.contraction.split // target.sms)
    # A step moves the tile's rows and columns once, and multiplies their product; small tiles are all traffic.
    return rounds * (m * n / 32 + m + n) / schedule.contraction.split


def mma_schedule(problem: ContractionProblem, m: int, n: int, *, stages: int = 3, split: int = 1) -> Schedule:
    """A tile for `mma.sync`: warps of up to 64 x 32 accumulators."""
    rows = min(m, 64)
    warps = (m // rows, max(1, n // 32))
    columns = n // warps[1]
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, *warps),
        repeats=(*batch, rows // 16, columns // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = max(16, STEP_BYTES // problem.element.bytes)
    return Schedule((*batch, m, n), layout, contraction=ContractionSchedule(step, "mma", stages, split))


def wgmma_schedule(problem: ContractionProblem, m: int, n: int, *, stages: int = 4, split: int = 1) -> Schedule:
    """A tile for `wgmma`: a warpgroup has 64 rows."""
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, m // 16, 1),
        repeats=(*batch, 1, n // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = PANEL_BYTES // problem.element.bytes
    return Schedule((*batch, m, n), layout, contraction=ContractionSchedule(step, "wgmma", stages, split))


def with_slices(schedule: Schedule) -> Schedule:
    """The schedule with its splits meeting by slices of rows; neighbouring threads take neighbouring columns."""
    assert schedule.contraction is not None
    *batch, m, n = schedule.tile
    rows = schedule.contraction.slice_rows(m)
    threads = schedule.layout.threads
    width = next((w for w in (4, 2) if rows * n >= threads * w), 1)
    lanes = min(WARP, n // width)
    warps_n = min(threads // WARP, max(1, n // (width * lanes)))
    warps_m = threads // WARP // warps_n
    lanes_m = WARP // lanes
    lead = (1,) * len(batch)
    layout = BlockedLayout(
        vector=(*lead, 1, width),
        lanes=(*lead, lanes_m, lanes),
        warps=(*lead, warps_m, warps_n),
        repeats=(*lead, -(-rows // (lanes_m * warps_m)), -(-n // (width * lanes * warps_n))),
        blocks=(*lead, 1, 1),
    )
    contraction = replace(schedule.contraction, reduction="slices", finish_layout=layout)
    return replace(schedule, contraction=contraction)


def fma_schedule(problem: ContractionProblem, m: int, n: int, *, stages: int = 2, split: int = 1) -> Schedule:
    """A tile for scalar multiply-adds: warps of 4 x 8 threads, each with a row of up to 4 columns at every repeat."""
    width = min(4, max(1, 16 // problem.accumulator.bytes))
    warps = (max(1, min(4, m // 8)), max(1, min(2, n // (8 * width))))
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, width),
        lanes=(*batch, 4, 8),
        warps=(*batch, *warps),
        repeats=(*batch, m // (4 * warps[0]), n // (8 * width * warps[1])),
        blocks=(*batch, 1, 1),
    )
    return Schedule((*batch, m, n), layout, contraction=ContractionSchedule(FMA_STEP, "fma", stages, split))

"""Choosing a contraction's schedule: the candidate with the least predicted time."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from mlirfuse.errors import ScheduleError
from mlirfuse.machine import MachineModel
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.contractions.grid import extents_of, own_products
from mlirfuse.schedule.contractions.several import joined, joined_schedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.kernels.contractions import predict_contraction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

CROWDED = 0.1
"""Share by which one wave of blocks takes longer where all copy the same rows at a time, whose lines queue at the parts
of the L2 that hold them; in between it grows with the square of the share of blocks."""


def choose_contraction(problem: ContractionProblem, target: Target, machine: MachineModel) -> Schedule:
    """The fastest candidate; raises `ScheduleError` where none fits, as of several products that share an operand."""
    found = fastest_first(problem, target, machine)
    if not found:
        raise ScheduleError("no schedule fits the products of this kernel")
    return found[0][0]


@lru_cache(maxsize=64)
def fastest_first(
    problem: ContractionProblem, target: Target, machine: MachineModel
) -> tuple[tuple[Schedule, float], ...]:
    """All candidates with their predicted microseconds, of those equal to a hundredth those of shorter steps along k
    first; see `choose_contraction`.
    """

    def order(pair: tuple[Schedule, float]) -> tuple[float, int, float]:
        schedule, microseconds = pair
        contraction = schedule.contraction_part
        if not contraction.persistent:
            crowding = _crowding(joined_schedule(schedule, problem), joined(problem))
            microseconds *= 1 + CROWDED * crowding**2
        return round(microseconds, 2), contraction.k, microseconds

    found = dict.fromkeys(candidates(problem, target))
    predicted = [(schedule, predict_contraction(schedule, problem, machine).microseconds) for schedule in found]
    return tuple(sorted(predicted, key=order))


def _crowding(schedule: Schedule, problem: ContractionProblem) -> float:
    """The share of blocks that copy the same row at a time; the mean over the rows of a block."""
    ends = list(zip(extents_of(schedule, problem)[-2:], schedule.tile[-2:], strict=True))
    copied = [min(extent, tile) for extent, tile in ends]
    # Blocks of products with other memory, and slices of k, have no rows in common.
    apart = [
        ceil(extent / tile) * own for (extent, tile), own in zip(ends, own_products(schedule, problem), strict=True)
    ]
    shared = sum(n / parts for n, parts in zip(copied, apart, strict=True))
    return shared / sum(copied) / schedule.contraction_part.tile_split

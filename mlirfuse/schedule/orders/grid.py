"""The order in which blocks follow one another, where that decides whether a sector is written at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mlirfuse.schedule.parts.split_sectors import follows, split_sectors
from mlirfuse.schedule.predict.counts.space import known_extents, with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def in_grid_orders(problem: Problem, schedules: Iterable[Schedule]) -> Iterator[Schedule]:
    """Schedules of one tile a block as they are, and with blocks first along the dimension along which the tiles of a
    result share sectors: the L2 has the rest of a sector then when the next block writes it.
    """
    extents, every = known_extents(with_extents(problem)), range(problem.rank)
    for schedule in schedules:
        yield schedule
        if schedule.transposed is not None and schedule.transposed.mirrored:
            continue
        shared = [split_sectors(array, schedule.tile, extents) for array in problem.writes]
        for split in dict.fromkeys(found[0] for found in shared if found is not None):
            if any(schedule.tile[d] < extents[d] for d in follows(every, split)):
                yield replace(schedule, grid_order=(*(d for d in every if d != split), split))

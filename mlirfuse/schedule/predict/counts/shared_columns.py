"""Traffic of operands that all rows share, such as weights: from the L2, or from the L1 where an SM has room."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.predict.device import Device
from mlirfuse.schedule.predict.facts import WORKING_SET
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def columns_traffic(work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], device: Device) -> None:
    """Adds it to the work of a kernel whose tiles each read these operands once."""
    rows = prod(
        [extents[d] / min(schedule.tile[d], extents[d]) for d in range(len(extents)) if d not in problem.reduced]
    )
    operands = problem.row_elements * problem.column_bytes
    every = rows * operands
    first = min(every, operands * min(work.blocks, device.machine.sms))
    missed = missing(operands / work.cluster, device.target.shared_per_sm)
    work.l2_read += first + (every - first) * missed
    work.l1 += every


def missing(nbytes: float, cache: float) -> float:
    """Share of reads that miss a cache, where so many bytes are read in turn, again and again.

    Args:
        nbytes: that are read.
        cache: bytes of the cache; of an SM's L1, which shares its memory with shared memory, that memory's.
    """
    return min(1.0, max(0.0, nbytes / (WORKING_SET * cache) - 1.0))

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
    missed = missing(operands / work.cluster, device)
    work.l2_read += first + (every - first) * missed
    work.l1 += every


def missing(nbytes: float, device: Device) -> float:
    """Share of reads that miss the L1 of an SM that reads so many bytes again and again.

    The L1 is what shared memory leaves of the same memory.
    """
    return max(0.0, 1.0 - WORKING_SET * device.target.shared_per_sm / max(1.0, nbytes))

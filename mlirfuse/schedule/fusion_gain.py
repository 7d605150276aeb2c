"""Time saved by fusing two kernels of static shape: a pure function of (problem, target)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod

from mlirfuse.schedule.grid.second_stage import partials_bytes
from mlirfuse.schedule.model.disagreeing import L2_BYTES, LOOP_CLUSTER_MEETING, LOOP_MEETING, SECOND_KERNEL_LAUNCH
from mlirfuse.schedule.model.speeds import DRAM_BYTES, MICROSECOND
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

Scheduled = tuple[Schedule, Problem]


@dataclass(frozen=True)
class Gain:
    """What one kernel saves in place of two, in microseconds.

    Attributes:
        saved: all that it saves, `meeting` subtracted; negative where two take less time.
        meeting: what its blocks take to meet, once for all reductions that they add up.
    """

    saved: float
    meeting: float


def fusion_gain(fused: Scheduled, apart: Sequence[Scheduled], shared_bytes: int, target: Target) -> Gain:
    """Time saved by one kernel in place of two, all of whose extents are known.

    A launch is saved, and reads that both kernels would do. But a persistent loop of the grid leaves partials to be
    added up, which kernels whose blocks reduce columns alone do not have: few rows that are very long are faster in two
    kernels.

    Args:
        fused: the one kernel.
        apart: the two.
        shared_bytes: bytes of an element of the iteration space that move once less.
        target: the architecture.
    """
    schedule, problem = fused
    elements = prod(extent or 1 for extent in problem.extents)
    saved = (SECOND_KERNEL_LAUNCH + shared_bytes * elements / DRAM_BYTES) / MICROSECOND
    ends = [_end(*kernel, target) for kernel in (fused, *apart)]
    return Gain(saved + sum(ends[1:]) - ends[0], _meeting(schedule))


def _end(schedule: Schedule, problem: Problem, target: Target) -> float:
    """Microseconds behind the last tile, where blocks meet and add up partials."""
    return _meeting(schedule) + 2 * partials_bytes(schedule, problem, target) / L2_BYTES / MICROSECOND


def _meeting(schedule: Schedule) -> float:
    """Microseconds that blocks take to meet, however little they add up; 0 without a persistent loop."""
    if schedule.persistent_loop is None:
        return 0.0
    return (LOOP_MEETING + LOOP_CLUSTER_MEETING * log2(schedule.layout.cluster)) / MICROSECOND

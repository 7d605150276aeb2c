"""What one kernel saves where two would do: a pure function of (problem, target)."""

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
    """What one kernel saves where two would do, in microseconds.

    Attributes:
        saved: all that it saves; negative where two take less time.
        meeting: what its blocks take to meet, once for all that they add up. It has been subtracted.
    """

    saved: float
    meeting: float


def fusion_gain(fused: Scheduled, apart: Sequence[Scheduled], shared_bytes: int, target: Target) -> Gain:
    """What one kernel saves in place of two, all of whose extents are known.

    Saved are a launch, and what both would read. But a persistent loop of the grid leaves parts to be added up, which
    kernels do not have whose blocks reduce columns alone. A few rows that are very long are not worth that: RMSNorm
    backward of 2, 16, 32 and 64 rows of 65536 columns in bfloat16 takes 6.0, 8.2, 9.7 and 13.2 us in one kernel, and
    3.8, 5.6, 9.2 and 15.8 in two (H200, replayed graphs; benchmarks/results/fusions-h200.json). Of 4096 columns two are
    faster by up to a microsecond there, but not where a host launches them.

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
    """Microseconds behind the last tile, where blocks meet and add up parts."""
    return _meeting(schedule) + 2 * partials_bytes(schedule, problem, target) / L2_BYTES / MICROSECOND


def _meeting(schedule: Schedule) -> float:
    """Microseconds that blocks take to meet, however little they add up; 0 without a persistent loop."""
    if schedule.persistent_loop is None:
        return 0.0
    return (LOOP_MEETING + LOOP_CLUSTER_MEETING * log2(schedule.layout.cluster)) / MICROSECOND

"""What no schedule is predicted to take less than: cheaper to tell than the fastest of them."""

from __future__ import annotations

from math import prod

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.predict.counts.space import known_extents, with_extents
from mlirfuse.schedule.predict.pricing import US
from mlirfuse.schedule.problem import Problem


def issue_microseconds(problem: Problem, machine: MachineModel) -> float:
    """Microseconds in which all SMs issue what is computed of each element, without accesses to memory: a lower bound
    of the prediction of every schedule.
    """
    elements = prod(known_extents(with_extents(problem)))
    return US * elements * problem.instructions / (machine.issue_per_sm * machine.sms)

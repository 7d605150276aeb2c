"""The predicted time of a tensor kernel: the number by which passes compare one kernel with two."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import inf, prod

from mlir import ir

from mlirfuse.analysis.kernels import symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.reduction_parts import obstacle, reduced_in_parts
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.errors import ScheduleError
from mlirfuse.machine.model import MachineModel
from mlirfuse.schedule.choice.choice import RESOLUTION, choose_schedule
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.predict import Prediction, predict, predict_contraction
from mlirfuse.schedule.predict.counts.accesses import missing
from mlirfuse.schedule.predict.counts.space import known_extents, with_extents
from mlirfuse.schedule.predict.work import US
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.reduction_parts import best_parts, least_microseconds
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.target import Target


def kernel_prediction(kernel: ir.Operation, target: Target, machine: MachineModel) -> Prediction:
    """What a kernel on tensors is predicted to take, with the schedule that it has or would get.

    Dynamic extents are assumed to be large (`predict/counts/space.py`, for contractions `contractions/grid.py`).

    Args:
        kernel: a tensor kernel.
        target: the architecture that it is scheduled for.
        machine: the speeds of the device.

    Raises:
        ScheduleError: the kernel's ops share no iteration space, or no schedule fits.
    """
    return _prediction(kernel, kernel_problem(kernel), target, machine)


def _prediction(kernel: ir.Operation, problem: AnyProblem, target: Target, machine: MachineModel) -> Prediction:
    given = schedule_of(kernel) if SCHEDULE in kernel.attributes else None
    if isinstance(problem, Problem):
        return predict(given or choose_schedule(problem, target, machine=machine), problem, machine)
    return predict_contraction(given or choose_contraction(problem, target, machine), problem, machine)


def least_of_two(
    kernel: ir.Operation, second: ir.Operation, apart: float, target: Target, machine: MachineModel
) -> float:
    """What two kernels take that are compared with one, in microseconds.

    Where all blocks of the one kernel wait for one another, which visits its tiles twice, two that any grid runs demand
    less of a device, and are taken where predictions are equal. The second of them finds in the L2 what the first one
    has read, as a second visit does.

    Args:
        kernel: the one kernel, on tensors, for which there is a schedule.
        second: of the two kernels, the one that runs behind.
        apart: what the two are predicted to take by themselves, in microseconds.
        target: the architecture that they are scheduled for.
        machine: the speeds of the device.
    """
    problem = kernel_problem(kernel)
    if SCHEDULE in kernel.attributes or not isinstance(problem, Problem) or problem.grid_persistent is None:
        return apart
    if choose_schedule(problem, target, machine=machine).grid_persistent is None:
        return apart
    again = prod(known_extents(with_extents(problem))) * problem.grid_persistent.again_bytes
    found = again * (1.0 - missing(again, machine.l2_bytes))
    cold = kernel_prediction(second, target, machine)
    warm = replace(cold, dram=max(0.0, cold.dram - US * found / machine.dram_bandwidth))
    return (apart - cold.microseconds + warm.microseconds) / RESOLUTION


def reduction_microseconds(kernel: ir.Operation, target: Target, machine: MachineModel) -> float:
    """What a kernel is predicted to take, in parts that another kernel combines where that is faster.

    Args:
        kernel: a tensor kernel.
        target: the architecture that it is scheduled for.
        machine: the speeds of the device.

    Raises:
        ScheduleError: the kernel's ops share no iteration space, or no schedule fits.
    """
    space, structures = kernel_space(kernel)
    problem = kernel_problem(kernel, (space, structures))
    together = apart = inf
    with suppress(ScheduleError):
        together = _prediction(kernel, problem, target, machine).microseconds
    if SCHEDULE not in kernel.attributes and obstacle(kernel, space, structures) is None:
        assert isinstance(problem, Problem)  # no contraction
        if together > least_microseconds(problem, machine):
            parts = best_parts(problem, target, machine, *reduced_in_parts(kernel, space, structures))
            apart = parts.microseconds if parts is not None else inf
    if together == apart == inf:
        raise ScheduleError(f"no schedule fits {symbol(kernel)}", where=kernel)
    return min(together, apart)

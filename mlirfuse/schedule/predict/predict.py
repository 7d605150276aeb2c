"""`predict`: the time of a schedule on a machine."""

from __future__ import annotations

from math import prod

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.predict.counts.space import known_extents, with_extents
from mlirfuse.schedule.predict.counts.windows import partial_bytes, result_bytes
from mlirfuse.schedule.predict.kernels.chunks import chunk_work, register_tile_work
from mlirfuse.schedule.predict.kernels.grid_persistent import grid_persistent_work
from mlirfuse.schedule.predict.kernels.loops import loop_work
from mlirfuse.schedule.predict.kernels.tiles import tile_work
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.work import US, Device, Work, device_of, price
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def predict(schedule: Schedule, problem: Problem, machine: MachineModel, *, registers: int | None = None) -> Prediction:
    """The time of a kernel without contractions.

    The problem has the extents of a call; for those that are None `space.with_extents` assumes some. `registers` are
    those of a thread, once the assembler has said; None for an estimate.
    """
    return price(work_of(schedule, problem, machine, registers), machine)


def work_of(schedule: Schedule, problem: Problem, machine: MachineModel, registers: int | None = None) -> Work:
    """What a kernel makes a device do; see `predict`."""
    problem, device = with_extents(problem), device_of(machine)
    work = _of_family(schedule, problem, device, registers)
    results = result_bytes(problem)
    work.read += partial_bytes(problem)
    work.written += results
    work.l2_written += results
    return work


def _of_family(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """The work without results of reductions, and without the first reads of arrays that elements share."""
    if schedule.persistent_loop is not None:
        return loop_work(schedule, problem, device, registers)
    if schedule.grid_persistent is not None:
        return grid_persistent_work(schedule, problem, device, registers)
    if schedule.persistence == "registers":
        return tile_work(schedule, problem, device, registers)
    if problem.shares_reads:
        return register_tile_work(schedule, problem, device, registers)
    return chunk_work(schedule, problem, device, registers)


def issue_microseconds(problem: Problem, machine: MachineModel) -> float:
    """Microseconds in which all SMs issue what is computed of each element, without accesses to memory: a lower bound
    of the prediction of every schedule.
    """
    elements = prod(known_extents(with_extents(problem)))
    return US * elements * problem.instructions / (machine.issue_per_sm * machine.sms)

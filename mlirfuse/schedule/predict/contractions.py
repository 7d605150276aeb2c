"""`predict_contraction`: what a kernel with a contraction will take, before there is code."""

from __future__ import annotations

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.contractions.checks import ring_bytes
from mlirfuse.schedule.contractions.cost import STAGED_COLUMNS
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.stages import SPARE_BYTES
from mlirfuse.schedule.model.contraction_registers import OTHER_REGISTERS, accumulator_registers
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.device import device_of
from mlirfuse.schedule.predict.meetings import meeting_seconds
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.pricing import US
from mlirfuse.schedule.schedule import Schedule

RING_SHARPNESS = 9.0
"""`Prediction.sharpness` of loops along k: a ring of stages lets copies run ahead of products, so that the longest part
hides most of the others."""

EPILOGUE_CYCLES = 8
"""Cycles in which a thread converts an accumulator, and stores it through shared memory."""

UNSTAGED = 4
"""Bytes that transposed tiles store for each byte of a result that is not staged: of parts of sectors."""


def predict_contraction(schedule: Schedule, problem: ContractionProblem, machine: MachineModel) -> Prediction:
    """The time of a kernel with a contraction.

    Args:
        schedule: the schedule.
        problem: the contraction; extents that are None are taken to be `UNKNOWN_EXTENT`.
        machine: the speeds of the device.
    """
    grid = ContractionGrid(schedule, problem, machine, _resident(schedule, problem, machine))
    contraction = grid.contraction
    step = family_schedules(contraction.instruction).step_times(grid)
    steps = US * grid.rounds * grid.steps
    return Prediction(
        dram=US * grid.dram_bytes / machine.dram_bandwidth,
        l2=steps * step.copies,
        shared=steps * step.shared,
        dsmem=0.0,
        tensor=steps * step.tensor,
        issue=steps * step.issue,
        special=0.0,
        latency=US * grid.turns * grid.steps * step.chain,
        blocks=0.0,
        exposed=US * _exposed_seconds(grid),
        synchronisation=US * meeting_seconds(grid),
        launch=US * _launch_seconds(grid),
        in_work=grid.resident,
        sharpness=RING_SHARPNESS,
    )


def _resident(schedule: Schedule, problem: ContractionProblem, machine: MachineModel) -> int:
    """Blocks that an SM holds at once; of asynchronous families as many as the schedule asks for, with all of it."""
    contraction, layout = schedule.contraction, schedule.layout
    assert contraction is not None
    if contraction.family.is_asynchronous:
        return max(1, schedule.blocks_per_sm)
    registers = accumulator_registers(layout, problem.accumulator.bytes) + OTHER_REGISTERS
    shared = ring_bytes(contraction, schedule.tile, problem) + SPARE_BYTES
    return device_of(machine).resident(layout.threads, registers, shared)


def _launch_seconds(grid: ContractionGrid) -> float:
    """A dependent launch is hidden as far as the kernel before leaves SMs free, which blocks of whole SMs need."""
    machine = grid.machine
    clusters = machine.cluster_launch if max(grid.contraction.cluster, _met_in_clusters(grid)) > 1 else 0.0
    return machine.graph_launch * min(1.0, grid.blocks / grid.sms) + clusters


def _met_in_clusters(grid: ContractionGrid) -> int:
    contraction = grid.contraction
    return contraction.split if contraction.reduction == "cluster" else 1


def _exposed_seconds(grid: ContractionGrid) -> float:
    """The first stage of a block, and the results of its tiles."""
    machine, contraction = grid.machine, grid.contraction
    first = machine.dram_latency
    results = EPILOGUE_CYCLES * grid.schedule.layout.elements_per_thread / machine.clock
    if contraction.swapped and contraction.split == 1 and (grid.problem.n or 1) % STAGED_COLUMNS:
        written = UNSTAGED * grid.tile[0] * grid.tile[1] * grid.problem.element.bytes
        results = max(results, written / machine.dram_bandwidth_per_sm)
    if contraction.consumer_groups > 1:
        return first + results
    if contraction.persistent:
        return first + grid.rounds * results
    return first + grid.turns * results + (grid.turns - 1) * machine.block_launch

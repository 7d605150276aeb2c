"""`predict_contraction`: what a kernel with a contraction will take, before there is code."""

from __future__ import annotations

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.operand_sums import summing_seconds
from mlirfuse.schedule.contractions.several import joined, joined_schedule
from mlirfuse.schedule.contractions.stages import block_bytes
from mlirfuse.schedule.contractions.step_times import StepTimes
from mlirfuse.schedule.model.registers import OTHER_REGISTERS, accumulator_registers
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.counts.contractions import (
    adding_seconds,
    arguments_seconds,
    epilogue_seconds,
    issue_seconds,
    meeting_seconds,
    special_seconds,
)
from mlirfuse.schedule.predict.prediction import SHARPNESS, STREAM_SHARPNESS, Prediction, mean
from mlirfuse.schedule.predict.work import US, device_of
from mlirfuse.schedule.schedule import Schedule

RING_SHARPNESS = 9.0
"""`Prediction.sharpness` of loops along k: a ring of stages lets copies run ahead of products, so that the longest part
hides most of the others."""


def predict_contraction(schedule: Schedule, problem: ContractionProblem, machine: MachineModel) -> Prediction:
    """The time of a kernel with a contraction; extents that are None are as it expects, or `UNKNOWN_EXTENT`."""
    schedule, problem = joined_schedule(schedule, problem), joined(problem)
    grid = ContractionGrid(schedule, problem, machine, _resident(schedule, problem, machine))
    contraction = grid.contraction
    step = family_schedules(contraction.instruction).step_times(grid)
    steps = US * grid.busiest_steps
    reread, adding = summing_seconds(grid)
    return Prediction(
        dram=US * grid.dram_bytes / machine.dram_bandwidth,
        l2=steps * step.copies,
        shared=steps * (step.shared + reread),
        dsmem=0.0,
        tensor=steps * step.tensor,
        issue=steps * (step.issue + adding) + US * grid.rounds * issue_seconds(grid),
        special=steps * step.special + US * grid.rounds * special_seconds(grid),
        latency=US * max(grid.busiest_steps * grid.turns / grid.rounds * step.chain, _alternating_seconds(grid, step)),
        blocks=0.0,
        exposed=US * (_exposed_seconds(grid, step) + adding_seconds(grid)),
        synchronisation=US * meeting_seconds(grid),
        launch=US * _launch_seconds(grid),
        in_work=grid.resident,
        # Blocks that compute operands wait for these at barriers.
        sharpness=RING_SHARPNESS if problem.computed_from == (None, None) else SHARPNESS,
    )


def _resident(schedule: Schedule, problem: ContractionProblem, machine: MachineModel) -> int:
    """Blocks that an SM holds at once; of asynchronous families as many as the schedule asks for, with all of it."""
    contraction, layout = schedule.contraction_part, schedule.layout
    if contraction.family.is_asynchronous:
        return max(1, schedule.blocks_per_sm)
    registers = accumulator_registers(layout, problem.accumulator.bytes) + OTHER_REGISTERS
    return device_of(machine).resident(layout.threads, registers, block_bytes(schedule, problem))


def _launch_seconds(grid: ContractionGrid) -> float:
    """A dependent launch is hidden as far as the kernel before leaves SMs free, which blocks of whole SMs need."""
    machine = grid.machine
    clusters = machine.cluster_launch if max(grid.contraction.cluster, _met_in_clusters(grid)) > 1 else 0.0
    return machine.graph_launch * min(1.0, grid.blocks / grid.sms) + clusters


def _met_in_clusters(grid: ContractionGrid) -> int:
    contraction = grid.contraction
    return contraction.split if contraction.reduction == "cluster" else 1


def _alternating_seconds(grid: ContractionGrid, step: StepTimes) -> float:
    """Time of consumer groups that alternate over tiles, each of which computes its epilogue before its next tile."""
    groups = grid.contraction.consumer_groups
    if groups == 1:
        return 0.0
    products = grid.steps * grid.kept * max(step.tensor, step.shared, step.copies)
    return grid.rounds / groups * (max(products, arguments_seconds(grid)) + epilogue_seconds(grid))


def _exposed_seconds(grid: ContractionGrid, step: StepTimes) -> float:
    """The first stage of a block, and the results of its tiles; of a persistent block's, only what delays the copies of
    its next tiles, which go on meanwhile.
    """
    machine, contraction = grid.machine, grid.contraction
    first, results = machine.dram_latency, epilogue_seconds(grid)
    if contraction.consumer_groups > 1:
        return first + results
    if not contraction.persistent:
        return first + grid.turns * results + (grid.turns - 1) * machine.block_launch
    steps = grid.busiest_steps
    copying = max(grid.dram_bytes / machine.dram_bandwidth, steps * step.copies)
    products = steps * max(step.tensor, step.shared, step.chain)
    each = results + max(0.0, arguments_seconds(grid) - products / grid.rounds)
    alone, behind = (mean((copying, products + t), STREAM_SHARPNESS) for t in (0.0, (grid.rounds - 1) * each))
    return first + results + behind - alone

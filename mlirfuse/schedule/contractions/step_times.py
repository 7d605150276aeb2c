"""`StepTimes`: what one step along k of a tile takes of an SM, and what instruction families have in common."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.contractions.grid import SHARED_COPY, ContractionGrid, contiguous_bytes, own_products
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import MMA_K_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32, TF32X3
from mlirfuse.target import LINE, SECTOR

BURST = 1.18
"""Rate of tensor cores between the beginnings and ends of tiles, to that of endless products (`wgmma_16bit_per_sm` and
others), which the power limit slows."""

ZEROS = 1.7
"""Time of a row past the end of an operand that tensor maps fill with zeros, to that of a row that they copy."""

PADDED = 1.5
"""Time in which tensor maps copy a line of a view that ends past the row of its source, to that of another line."""

OVERHANG_CYCLES = 14
"""Cycles in which a tensor map copies a row that ends past the end of k, whose rest it fills with zeros."""

CLUSTER_WAIT = 1.1
"""Time of a step in a cluster, whose blocks wait for each other's stages, to that of a block alone."""

COPY_CYCLES = 32
"""Cycles from one copy of a thread to its next, of any width, by `cp.async` or through a register: the address, the
comparison with the end, and the access."""

COMPUTED_INSTRUCTIONS = 6
"""Of a thread for each element of an operand that the kernel computes, beside what computes it: loading what it is
computed from, and storing it, in shared memory."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step of one block; parts overlap with each other, and with those of steps before and after.

    Attributes:
        tensor: of the SM's tensor cores.
        shared: of the SM's shared memory, which instructions read and copies write.
        copies: of copies to the SM's shared memory.
        issue: of the SM's schedulers and CUDA cores.
        special: of the SM's special-function units.
        chain: of what waits for each other: barriers, a warp's own instructions, a stage's round trip.
    """

    tensor: float = 0.0
    shared: float = 0.0
    copies: float = 0.0
    issue: float = 0.0
    special: float = 0.0
    chain: float = 0.0


def tensor_rate(machine: MachineModel, instruction: str, problem: ContractionProblem) -> float:
    """Operations a second of one SM's tensor cores on the problem's operands.

    Args:
        machine: the device.
        instruction: `mma` or `wgmma`, as the machine's quantities have it.
        problem: the contraction.
    """
    kind = "int8" if problem.element.name == "int8" else {1: "f8", 2: "16bit", 4: "tf32"}[problem.element.bytes]
    # Devices without float8 instructions multiply what they have converted.
    rate: float = getattr(machine, f"{instruction}_{kind}_per_sm") or getattr(machine, f"{instruction}_16bit_per_sm")
    return BURST * rate / (3 if problem.precision == TF32X3 else 1)


def mapped_seconds(grid: ContractionGrid) -> float:
    """Time of a step's copies by tensor maps, in the mean over steps: by how rows lie in lines, past an end, and in
    clusters.
    """
    rows = grid.swapped(*contiguous_bytes(grid.problem))
    along_k = grid.swapped(*grid.problem.k_contiguous)
    overhang = grid.overhanging_boxes * OVERHANG_CYCLES / grid.machine.clock
    windows = grid.swapped(*grid.problem.windows)
    total, cluster = 0.0, grid.contraction.cluster
    for side, (share, part) in enumerate(((SHARED_COPY[cluster], 1 / cluster), (1.0, 1.0))):
        zeros = grid.copied[side] - grid.sides[side] / grid.counts[side]
        longer = 1 + (ZEROS - 1) * max(0.0, zeros) / grid.copied[side]
        window = windows[side]
        padded = 0 if window is None else window[2]
        longer *= 1 + (PADDED - 1) / ceil(padded / LINE) if padded else 1.0
        copy = share * longer * grid.step_bytes[side] / mapped_rate(grid.machine, padded or rows[side])
        copy = max(copy, part * crowded_seconds(grid, side))
        total += max(copy, part * grid.copied[side] * overhang if along_k[side] else 0.0)
    return total


def crowded_seconds(grid: ContractionGrid, side: int) -> float:
    """Time of a step in which all SMs copy an operand of fewer lines than the L2 has parts, which hold one each."""
    machine, size = grid.machine, grid.element_bytes[side]
    parts = machine.l2_read_bandwidth / (SECTOR * machine.clock)
    lines = ceil(grid.sides[side] * grid.problem.summed * size / LINE) * own_products(grid.schedule, grid.problem)[side]
    nbytes = grid.step_bytes[side] * grid.filled[side] * grid.busy
    return nbytes / machine.l2_read_bandwidth * parts / lines if lines < parts else 0.0


def mapped_rate(machine: MachineModel, row_bytes: int) -> float:
    """Bytes a second that tensor maps copy to one SM, of an operand whose rows have so many."""
    if row_bytes % LINE == 0:
        return machine.tma_line_bandwidth_per_sm
    return machine.tma_unaligned_bandwidth_per_sm if row_bytes % SECTOR else machine.tma_sector_bandwidth_per_sm


def arrival_seconds(grid: ContractionGrid, kept: int = 1) -> float:
    """Time of a step whose stage is filled as soon as it is free: all of a ring's but those kept are on their way."""
    return grid.machine.l2_loaded_latency / max(1, grid.contraction.stages - kept)


def staged_seconds(grid: ContractionGrid) -> float:
    """Time of a step's copies by threads, at the rate of one SM alone or at its share of the L2's.

    Rows past an operand's end are zeros that nothing is read for. Of an operand whose elements lie scattered a sector
    comes for each.
    """
    machine = grid.machine
    share = machine.l2_read_bandwidth / grid.busy
    moved, scattered = 0.0, grid.swapped(*grid.problem.scattered)
    for side, sources in enumerate(grid.source_bytes):
        sectors = sum(max(SECTOR, size) for size in sources) / sum(sources) if scattered[side] else 1.0
        moved += grid.step_bytes[side] * grid.filled[side] * sectors
    return moved / min(share, machine.cp_async_bandwidth_per_sm)


def copying_seconds(grid: ContractionGrid) -> float:
    """Time in which a block's threads issue a step's copies."""
    return COPY_CYCLES * thread_copies(grid) / grid.machine.clock


def thread_copies(grid: ContractionGrid) -> float:
    """Copies of a thread in a step, each as wide as rows are aligned."""
    width = min(grid.problem.row_bytes, WIDEST_ACCESS)
    return sum(grid.step_bytes) / (width * grid.schedule.layout.threads)


def computed_elements(grid: ContractionGrid) -> tuple[float, float]:
    """Elements of each side that the kernel computes in a step."""
    computed = grid.swapped(*(stored is not None for stored in grid.problem.computed_from))
    rows, columns = (grid.contraction.k * n * own for n, own in zip(grid.tile, computed, strict=True))
    return rows, columns


def computing(grid: ContractionGrid) -> tuple[float, float]:
    """Instructions of all threads that compute a step's operands, and those of special-function units beside."""
    each = list(zip(computed_elements(grid), grid.swapped(*grid.problem.computing), strict=True))
    instructions = sum(elements * (COMPUTED_INSTRUCTIONS + plain) for elements, (plain, _) in each)
    return instructions, sum(elements * special for elements, (_, special) in each)


def unsupported_type(instruction: str, problem: ContractionProblem) -> str | None:
    """Why tensor cores cannot multiply operands of a type in a precision, or None."""
    name, precision = problem.element.name, problem.precision
    if name in ("float16", "bfloat16") and problem.accumulator.name != "float32":
        return f"{instruction} adds up in float32, not in {problem.accumulator.name}"
    if name in ("float16", "bfloat16") or problem.element.is_float8:
        return None
    if name == "int8":
        sums = problem.accumulator.name
        return None if sums == "int32" else f"{instruction} adds up products of int8 in int32, not in {sums}"
    is_split = name == "float32" and precision in (TF32, TF32X3)
    return None if is_split else f"{instruction} does not multiply {name} as {precision}"


def check_fragments(contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
    """What is wrong with steps along k, or with accumulators that lie as those of PTX's `m16n8` shapes, or None."""
    if contraction.k * problem.element.bytes % MMA_K_BYTES:
        return f"steps of {contraction.k} along k are not a multiple of {MMA_K_BYTES // problem.element.bytes}"
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.vector[d]) for d in (m, n)]
    if held != [(8, 1), (4, 2)] or layout.within(m) % 2 or layout.has_runs:
        return "an accumulator's fragment has lanes (8, 4), vectors of 2 columns and pairs of rows in a warp"
    return None


def holds_warpgroup_sums(layout: BlockedLayout) -> bool:
    """Whether a layout is that of `wgmma`'s accumulators: rows of whole warpgroups, columns of one warp."""
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.within(d), layout.vector[d]) for d in (m, n)]
    is_spread = layout.warps[n] == 1 and layout.warps[m] % 4 == 0 and not layout.has_runs
    return held == [(8, 2, 1), (4, 1, 2)] and is_spread


def product_flops(schedule: Schedule) -> int:
    """Multiply and add operations of one step along k of a tile."""
    *_, m, n = schedule.tile
    return 2 * m * n * schedule.contraction_part.k

"""What makes a contraction's schedule illegal for a problem and a target."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.contraction_registers import PRODUCT_REGISTERS
from mlirfuse.schedule.model.machine import MMA_K_BYTES, WARPGROUP, WIDEST_ACCESS
from mlirfuse.schedule.model.residency import blocks_by_memory, registers_shared_out
from mlirfuse.schedule.parts.contraction import (
    INSTRUCTIONS,
    MAX_CONSUMER_GROUPS,
    REDUCTIONS,
    SLICED,
    WHOLE,
    ContractionSchedule,
)
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.precision import TF32, TF32X3
from mlirfuse.target import Target
from mlirfuse.target.instructions import FAMILIES

LONGEST_FLOAT8_SUM = 256
"""Elements of k that an accumulator sums up of float8 operands, of whose sums Hopper's tensor cores keep some 14 bits.
"""

MOST_FLAGGED = 128
"""Words that a thread takes out of flagged buffers at once, at most: they wait for each other in registers."""


def ring_bytes(schedule: ContractionSchedule, tile: tuple[int, ...], problem: ContractionProblem) -> int:
    """Bytes of shared memory of the operands' ring; operands that the kernel computes have one slot in it, whatever
    `stages` is.
    """
    rows = reversed(tile[-2:]) if schedule.swapped else tile[-2:]
    slots = [schedule.stages if source is None else 1 for source in problem.computed_from]
    row_bytes = schedule.k * problem.element.bytes
    return row_bytes * sum(count * extent for count, extent in zip(slots, rows, strict=True))


def check_ring(
    schedule: ContractionSchedule, tile: tuple[int, ...], problem: ContractionProblem, target: Target
) -> str | None:
    """Why the operands' ring fits no block of the target, whatever else is in shared memory, or None."""
    total = ring_bytes(schedule, tile, problem)
    if total <= target.shared_per_block:
        return None
    limit = f"{target.chip} has {target.shared_per_block} a block"
    return f"its ring needs {total} bytes of shared memory, {limit}: choose smaller tiles or steps, or fewer stages"


def check_whole_grid(
    schedule: ContractionSchedule,
    tile: tuple[int, ...],
    layout: BlockedLayout,
    extents: tuple[int | None, ...],
    problem: ContractionProblem,
    target: Target,
) -> str | None:
    """Why a grid whose blocks wait for each other cannot be resident as a whole, or None where it may be.

    Registers, of which ptxas decides, may allow still fewer; the driver refuses such a launch. Extents that only run
    time knows are left to it too.

    Args:
        schedule: how the k-loop runs.
        tile: of the accumulators: batch, m, n.
        layout: of the accumulators.
        extents: of the result, in the order of the tile; None where dynamic.
        problem: the contraction.
        target: the architecture.
    """
    if schedule.split == 1 or schedule.reduction not in WHOLE or None in extents:
        return None
    blocks = schedule.split * prod(-(-(extent or 1) // n) for extent, n in zip(extents, tile, strict=True))
    producers = schedule.family.producer_threads
    threads = layout.threads * schedule.consumer_groups + producers
    resident = target.sms * blocks_by_memory(threads, ring_bytes(schedule, tile, problem), target)
    if blocks <= resident:
        return None
    return (
        f"its {blocks} blocks wait for each other ({schedule.reduction!r}), and {target.sms} SMs hold "
        f"{resident} of them at once at most: choose a smaller split or larger tiles, or the reduction "
        f"'last_block' or 'serial', which need not be resident as a whole"
    )


def check_registers(
    schedule: ContractionSchedule, layout: BlockedLayout, blocks_per_sm: int, target: Target
) -> str | None:
    """Why threads have no registers for the accumulators of one `wgmma`, or None.

    ptxas counts those that threads are launched with, when the producer has as many as consumers.

    Args:
        schedule: how the k-loop runs.
        layout: of the accumulators.
        blocks_per_sm: blocks that share an SM's registers; 0 is one.
        target: the architecture.
    """
    if not schedule.family.is_asynchronous:
        return None
    threads = layout.threads * schedule.consumer_groups + WARPGROUP
    launched = registers_shared_out(threads, max(1, blocks_per_sm), target)
    columns = layout.extents[-1]
    if columns // 2 + PRODUCT_REGISTERS <= launched:
        return None
    return (
        f"threads of a block of {threads} are launched with {launched} registers, which are too few for the "
        f"{columns // 2} accumulators that each has of {columns} columns: choose fewer columns or rows"
    )


def check_contraction(
    schedule: ContractionSchedule, tile: tuple[int, ...], layout: BlockedLayout, problem: ContractionProblem
) -> str | None:
    """What makes a contraction's schedule illegal, or None.

    Args:
        schedule: how the k-loop runs.
        tile: of the accumulators: batch, m, n.
        layout: of the accumulators.
        problem: the contraction.
    """
    if schedule.instruction not in INSTRUCTIONS:
        return f"instruction {schedule.instruction!r} is not one of {', '.join(INSTRUCTIONS)}"
    if schedule.reduction not in REDUCTIONS:
        return f"reduction {schedule.reduction!r} is not one of {', '.join(REDUCTIONS)}"
    if len(tile) != len(problem.batch) + 2 or any(n != 1 for n in tile[:-2]):
        return f"tile {tile} must have extent 1 in each of {len(problem.batch)} batch dimensions, then m and n"
    if (
        min(schedule.k, schedule.split, schedule.raster, schedule.cluster, schedule.consumer_groups) < 1
        or schedule.stages < 2
    ):
        return "k, split, raster, cluster and consumer groups must be at least 1, and stages at least 2"
    if schedule.promote < 0:
        return f"sums are promoted after {schedule.promote} steps"
    only_asynchronous = schedule.persistent or schedule.streamed or schedule.promote or schedule.cluster > 1
    if only_asynchronous and not schedule.family.is_asynchronous:
        return f"{schedule.instruction} has no persistent grid, no clusters, no hints to the L2, and promotes no sums"
    if schedule.transposed_operands and not schedule.family.takes_transposed:
        return f"{schedule.instruction} takes operands as they lie in memory, not transposed"
    if schedule.persistent and schedule.split > 1:
        return "a persistent grid has no splits: its blocks are on different tiles"
    if schedule.consumer_groups > 1 and (reason := _check_consumer_groups(schedule, layout, problem)):
        return reason
    if schedule.split > -(-problem.k // schedule.k):
        return f"{schedule.split} splits of {-(-problem.k // schedule.k)} steps along k leave blocks without work"
    if layout.extents != tile:
        return f"the accumulators' layout covers {layout.extents}, not the tile {tile}"
    slices = schedule.split > 1 and schedule.reduction in SLICED
    if slices and problem.accumulator_bytes:
        return (
            f"reductions of a tile need a block that has it whole, and with {schedule.reduction!r} blocks have slices"
        )
    if slices and (reason := _check_slices(schedule, tile, layout)):
        return reason
    if schedule.split > 1 and schedule.reduction == "flagged" and problem.accumulator.name != "float32":
        return f"flag-in-data exchanges take float32, not {problem.accumulator.name}"
    if schedule.family.is_tensor_core:
        return _check_tensor_cores(schedule, layout, problem)
    return _check_runs(layout, problem)


def _check_runs(layout: BlockedLayout, problem: ContractionProblem) -> str | None:
    """What is wrong with fragments side by side, which a thread loads at once, or None."""
    for run in layout.run:
        if run & (run - 1) or run * problem.element.bytes > WIDEST_ACCESS:
            return f"runs of {run} {problem.element.name} are no power of two, or of more than {WIDEST_ACCESS} bytes"
    return None


def _check_consumer_groups(
    schedule: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem
) -> str | None:
    if not schedule.persistent:
        return "consumer groups alternate over the tiles of a persistent grid"
    if layout.threads != WARPGROUP or schedule.consumer_groups > MAX_CONSUMER_GROUPS:
        return (
            f"{schedule.consumer_groups} consumer groups of {layout.threads} threads: there are "
            f"{MAX_CONSUMER_GROUPS} at most, of {WARPGROUP}"
        )
    if problem.accumulator_bytes:
        return "reductions of tiles are added up by the block, which has no consumer group for that"
    return None


def _check_slices(schedule: ContractionSchedule, tile: tuple[int, ...], layout: BlockedLayout) -> str | None:
    rows = schedule.slice_rows(tile[-2])
    if tile[-2] % rows:
        return f"slices of {rows} rows do not divide the tile's {tile[-2]}"
    if schedule.second_stage_layout is None:
        return "slices need a second_stage_layout"
    if schedule.reduction == "cluster" and schedule.split > 8:
        return f"a cluster has 8 blocks at most, not {schedule.split}"
    second_stage = schedule.second_stage_layout
    words = (
        schedule.split
        * second_stage.fragments(len(tile) - 2)
        * second_stage.fragments(len(tile) - 1)
        * second_stage.vector[-1]
    )
    if schedule.reduction == "flagged" and words > MOST_FLAGGED:
        return f"a thread would collect {words} words at once, more than {MOST_FLAGGED}"
    if schedule.second_stage_layout.threads != layout.threads:
        return (
            f"the second stage has {schedule.second_stage_layout.threads} threads, the accumulators' layout "
            f"{layout.threads}"
        )
    return schedule.second_stage_layout.check((*tile[:-2], rows, tile[-1]))


def _check_tensor_cores(
    schedule: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem
) -> str | None:
    if reason := tensor_core_misfit(schedule.instruction, problem):
        return reason
    summed = schedule.k * schedule.promote
    if schedule.family.is_asynchronous and problem.promotes and not 0 < summed <= LONGEST_FLOAT8_SUM:
        return f"sums of {problem.element.name} are promoted after {LONGEST_FLOAT8_SUM} elements of k at most"
    if schedule.k * problem.element.bytes % MMA_K_BYTES:
        return f"steps of {schedule.k} along k are not a multiple of {MMA_K_BYTES // problem.element.bytes}"
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.vector[d]) for d in (m, n)]
    if held != [(8, 1), (4, 2)] or layout.within(m) % 2 or layout.has_runs:
        return "an accumulator's fragment has lanes (8, 4), vectors of 2 columns and pairs of rows in a warp"
    return None


def tensor_core_misfit(instruction: str, problem: ContractionProblem) -> str | None:
    """Why tensor cores cannot multiply the operands by an instruction, or None."""
    name, precision = problem.element.name, problem.precision
    if name in ("float16", "bfloat16") and problem.accumulator.name != "float32":
        return f"{instruction} adds up in float32, not in {problem.accumulator.name}"
    if problem.element.is_float8 or (name == "float32" and precision in (TF32, TF32X3)):
        if FAMILIES[instruction].is_asynchronous and not all(problem.k_contiguous):
            return f"wgmma multiplies {name} only where k is contiguous in both operands"
        if FAMILIES[instruction].is_asynchronous and precision == TF32X3:
            return "wgmma has no registers for the parts of an operand that 3xtf32 is made of"
        return None
    return None if name in ("float16", "bfloat16") else f"{instruction} does not multiply {name} as {precision}"

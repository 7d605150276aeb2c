"""What makes a contraction's schedule illegal for a problem and a target."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.operand_sums import check_sums
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.schedule.model.residency import blocks_by_memory
from mlirfuse.schedule.parts.contraction import MAX_CONSUMER_GROUPS, REDUCTIONS, SLICED, WHOLE, ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.renamed_names import not_one_of
from mlirfuse.target import Target
from mlirfuse.target.instructions import FAMILIES

MOST_AT_ONCE = 128
"""Partial sums that a thread reads at once, at most: they wait for each other in registers."""


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
    if schedule.instruction not in FAMILIES:
        return not_one_of("instruction", schedule.instruction, FAMILIES)
    if schedule.reduction not in REDUCTIONS:
        return not_one_of("reduction", schedule.reduction, REDUCTIONS)
    if len(tile) != len(problem.batch) + 2 or any(n != 1 for n in tile[:-2]):
        return f"tile {tile} must have extent 1 in each of {len(problem.batch)} batch dimensions, then m and n"
    if (
        min(schedule.k, schedule.split, schedule.raster, schedule.cluster, schedule.consumer_groups) < 1
        or schedule.stages < 2
    ):
        return "k, split, raster, cluster and consumer groups must be at least 1, and stages at least 2"
    if schedule.promote < 0:
        return f"sums are promoted after {schedule.promote} steps: promote must be at least 0"
    only_asynchronous = schedule.persistent or schedule.streamed or schedule.promote or schedule.cluster > 1
    if only_asynchronous and not schedule.family.is_asynchronous:
        return f"{schedule.instruction} has no persistent grid, no clusters, no hints to the L2, and promotes no sums"
    if schedule.transposed_operands and not schedule.family.takes_transposed:
        return f"{schedule.instruction} does not take transposed operands"
    if schedule.persistent and schedule.tile_split > 1:
        return "a persistent grid has no splits but of its last tiles: its blocks are on different tiles"
    if schedule.tail and (reason := _check_tail(schedule, problem, tile)):
        return reason
    if schedule.consumer_groups > 1 and (reason := _check_consumer_groups(schedule, layout, problem)):
        return reason
    if problem.products > 1 and (schedule.split > 1 or schedule.cluster > 1):
        return f"{problem.products} products that share an operand have no splits and no clusters"
    if schedule.split > problem.steps(schedule.k):
        return f"{schedule.split} splits of {problem.steps(schedule.k)} steps along k leave blocks without work"
    if layout.extents != tile:
        return f"the accumulators' layout covers {layout.extents}, not the tile {tile}"
    slices = schedule.split > 1 and schedule.reduction in SLICED
    if slices and problem.accumulator_bytes:
        return (
            f"reductions in the epilogue need whole tiles, and with {schedule.reduction!r} blocks have slices of rows"
        )
    if slices and (reason := _check_slices(schedule, tile, layout)):
        return reason
    if schedule.split > 1 and schedule.reduction == "flagged" and problem.accumulator.name != "float32":
        return f"flag-in-data exchanges take float32, not {problem.accumulator.name}"
    family = family_schedules(schedule.instruction)
    return (
        family.unsupported(problem) or family.check(schedule, layout, problem) or check_sums(schedule, layout, problem)
    )


def _check_tail(schedule: ContractionSchedule, problem: ContractionProblem, tile: tuple[int, ...]) -> str | None:
    if schedule.tail < 0 or schedule.split == 1:
        return f"{schedule.tail} tiles with a split of {schedule.split}: the number is positive, the split above 1"
    if schedule.reduction != "last_block":
        return f"blocks of the last tiles are combined by 'last_block', not {schedule.reduction!r}"
    if max(schedule.cluster, schedule.consumer_groups) > 1:
        return "clusters and consumer groups are on whole tiles, of which all take as many steps"
    sides = (problem.n, problem.m) if schedule.swapped else (problem.m, problem.n)
    if None in (*problem.batch, *sides):
        return "which tiles are the last ones is known for known extents only"
    count = prod(-(-(extent or 1) // n) for extent, n in zip((*problem.batch, *sides), tile, strict=True))
    return None if schedule.tail < count else f"{schedule.tail} last tiles are not fewer than all {count}"


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
        return "reductions in the epilogue cannot be combined with several consumer groups"
    return None


def words_at_once(schedule: ContractionSchedule, second_stage: BlockedLayout) -> int:
    """Partial sums that a thread reads at once of a slice of rows, for which threads have a layout."""
    rows, columns = second_stage.rank - 2, second_stage.rank - 1
    return schedule.split * second_stage.fragments(rows) * second_stage.fragments(columns) * second_stage.vector[-1]


def _check_slices(schedule: ContractionSchedule, tile: tuple[int, ...], layout: BlockedLayout) -> str | None:
    rows = schedule.slice_rows(tile[-2])
    if tile[-2] % rows:
        return f"slices of {rows} rows do not divide the tile's {tile[-2]}"
    if schedule.second_stage_layout is None:
        return "slices need a second_stage_layout"
    if schedule.reduction == "cluster" and schedule.split > 8:
        return f"a cluster has 8 blocks at most, not {schedule.split}"
    words = words_at_once(schedule, schedule.second_stage_layout)
    if schedule.reduction == "flagged" and words > MOST_AT_ONCE:
        return f"a thread would read {words} flagged words at once, more than {MOST_AT_ONCE}"
    if schedule.second_stage_layout.threads != layout.threads:
        return (
            f"the second stage has {schedule.second_stage_layout.threads} threads, the accumulators' layout "
            f"{layout.threads}"
        )
    return schedule.second_stage_layout.check((*tile[:-2], rows, tile[-1]))

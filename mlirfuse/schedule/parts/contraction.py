"""The part of a schedule that a contraction adds: how its k-loop runs, and on which instructions."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.dtypes import DType
from mlirfuse.support.precision import FAST_ACCUM, IEEE, TF32, TF32X3
from mlirfuse.support.renamed_names import refuses_old_fields
from mlirfuse.target import Target

INSTRUCTIONS = ("fma", "mma", "wgmma")
"""What multiplies: scalar multiply-adds on any type, `mma.sync` (sm_80), or `wgmma` fed by tensor maps (sm_90a)."""

REDUCTIONS = ("serial", "last_block", "grid_sync", "cluster", "flagged")
"""How the partial tiles of a split meet: added one after another in order; all by the block that comes last; or by all
blocks at once, a slice of the tile's rows each, when all parts are there: in device memory, in the shared memory of
a cluster, or, without waiting for one another, in flagged buffers. `grid_sync` and `flagged` need all blocks resident
at once. All are deterministic."""

SLICED = ("grid_sync", "cluster", "flagged")
"""Those in which every block adds up some rows, with a `second_stage_layout`."""

WHOLE = ("grid_sync", "flagged")
"""Those for which the grid must be resident as a whole."""

BLOCK_RESERVE = 1024
"""Shared memory that the driver takes of each block."""

LONGEST_SUM = 2048
"""Elements of k that an accumulator of a tensor core sums up where errors show, if registers allow. What does not fit
the accumulator is cut off at each instruction, which costs 1.1e-9 of the largest result an element (H200, bf16): 2.3e-6
here. cuBLAS has 1.3e-6 to 4e-6 where it splits k, and 7.8e-5 for a sum of 65536 elements where it does not."""

LONGEST_FLOAT8_SUM = 256
"""The same of float8, of whose sums Hopper's tensor cores keep some 14 bits."""

WARPGROUP_THREADS, MAX_CONSUMER_GROUPS = 128, 2
"""Threads of a consumer group, a warpgroup, and how many consumer groups have registers for tiles that are worth it."""

PRODUCT_REGISTERS = 26
"""Registers beside its accumulators that ptxas wants for a `wgmma` (it refuses kernels with fewer: C7602)."""

LOAD_BYTES = 16
"""Bytes that a thread loads from shared memory at once, at most."""

MOST_FLAGGED = 128
"""Words that a thread takes out of flagged buffers at once: they wait for each other in registers."""


@refuses_old_fields
@dataclass(frozen=True)
class ContractionSchedule:
    """How the k-loop of a contraction runs.

    Attributes:
        k: elements of the contracted dimension in one step.
        instruction: one of `INSTRUCTIONS`.
        stages: slots of the shared-memory ring that the operands pass through.
        split: blocks that share the contracted dimension of one tile.
        reduction: one of `REDUCTIONS`; without a split it means nothing.
        second_stage_layout: where blocks add up slices of rows (`SLICED`), how a slice is spread over threads.
        persistent: whether a grid of as many blocks as the device holds loops over the tiles, of which the next one's
            operands are copied while a tile's epilogue runs; with `wgmma` only.
        raster: rows of tiles that blocks go through together, a column of them after the other. Tiles that are worked
            on at the same time then read fewer different parts of the operands than a whole row of tiles does.
        cluster: blocks of a cluster, whose tiles are neighbours along n, in a persistent grid too: each copies a part
            of the operand that they have in common to all of them; with `wgmma` only.
        streamed: whether operands are the first to leave the L2, for what stays in it to stay; with `wgmma` only.
        promote: steps along k after which sums leave the tensor cores' accumulators, which cut them off, and are added
            up in registers of their own; 0 is never; with `wgmma` only.
        consumer_groups: ping-pong consumer groups, which alternate over a block's tiles, each of one warpgroup: while
            one's products run, the other runs its epilogue; with a persistent grid only.
        swapped: whether the result's tile is transposed: its rows are operand B's, its columns operand A's.
        transposed_operands: whether operands in which k is contiguous are transposed on their way to shared memory, for
            threads to load a step's rows (or columns) as vectors; with `fma` only.
    """

    k: int
    instruction: str
    stages: int = 2
    split: int = 1
    reduction: str = "last_block"
    second_stage_layout: BlockedLayout | None = None
    persistent: bool = False
    raster: int = 1
    cluster: int = 1
    streamed: bool = False
    promote: int = 0
    consumer_groups: int = 1
    swapped: bool = False
    transposed_operands: bool = False

    def slice_rows(self, rows: int) -> int:
        """Rows of a tile of `rows` that one block of a split adds up: the fewest that divide it and leave none over."""
        active = 1 << (min(self.split, rows).bit_length() - 1)
        return -(-rows // active)


@dataclass(frozen=True)
class ContractionProblem:
    """What a heuristic may know of a contraction.

    Attributes:
        batch: number of products for each batch dimension; None where dynamic.
        m: rows of the result; None where dynamic.
        n: columns of the result; None where dynamic.
        k: elements that are summed over.
        element: dtype of the operands.
        accumulator: dtype of the sums.
        row_bytes: bytes to which every row of both operands is aligned, 16 at most.
        k_contiguous: for each operand whether k is the dimension in which its memory is contiguous.
        precision: how precisely operands are multiplied (`mlirfuse/support/precision.py`).
        accumulator_bytes: of an element of all reductions together, which the kernel reduces its result to, over
            several tiles.
        reduced_over: whether these are over rows, and over columns.
        errors_show: whether a result is as precise as the sums, so that it shows what tensor cores cut off of them.
        computed_from: for each operand that the kernel computes, bytes of an element of what it reads; else None.
        sources: for each operand that the kernel computes, bytes of an element of each argument that has all of its
            dimensions.
        residual_bytes: of an element of an argument that the epilogue reads beside every element of a result of its
            type; 0 where there is none.
        reversed: whether an operand may have negative strides, which no tensor map describes.
    """

    batch: tuple[int | None, ...]
    m: int | None
    n: int | None
    k: int
    element: DType
    accumulator: DType
    row_bytes: int
    k_contiguous: tuple[bool, bool] = (True, True)
    precision: str = IEEE
    accumulator_bytes: int = 0
    reduced_over: tuple[bool, bool] = (False, False)
    errors_show: bool = False
    computed_from: tuple[int | None, ...] = (None, None)
    sources: tuple[tuple[int, ...], ...] = ((), ())
    residual_bytes: int = 0
    reversed: bool = False

    @property
    def promotes(self) -> bool:
        """Whether sums on Hopper's tensor cores, which keep too few bits of them, are carried on outside."""
        return self.element.is_float8 and self.precision != FAST_ACCUM


def ring_bytes(schedule: ContractionSchedule, tile: tuple[int, ...], problem: ContractionProblem) -> int:
    """Shared memory of the operands' ring; those that the kernel computes have one slot in it, whatever `stages` is."""
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
    producers = WARPGROUP_THREADS if schedule.instruction == "wgmma" else 0
    by_threads = target.threads_per_sm // (layout.threads * schedule.consumer_groups + producers)
    by_memory = target.shared_per_sm // (ring_bytes(schedule, tile, problem) + BLOCK_RESERVE)
    resident = target.sms * min(target.blocks_per_sm, by_threads, by_memory)
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
    if schedule.instruction != "wgmma":
        return None
    threads = layout.threads * schedule.consumer_groups + WARPGROUP_THREADS
    launched = target.registers_per_sm // (max(1, blocks_per_sm) * threads) // 8 * 8
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
    only_wgmma = schedule.persistent or schedule.streamed or schedule.promote or schedule.cluster > 1
    if schedule.instruction != "wgmma" and only_wgmma:
        return f"{schedule.instruction} has no persistent grid, no clusters, no hints to the L2, and promotes no sums"
    if schedule.transposed_operands and schedule.instruction != "fma":
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
    if schedule.instruction != "fma":
        return _check_tensor_cores(schedule, layout, problem)
    return _check_runs(layout, problem)


def _check_runs(layout: BlockedLayout, problem: ContractionProblem) -> str | None:
    """What is wrong with fragments side by side, which a thread loads at once, or None."""
    for run in layout.run:
        if run & (run - 1) or run * problem.element.bytes > LOAD_BYTES:
            return f"runs of {run} {problem.element.name} are no power of two, or of more than {LOAD_BYTES} bytes"
    return None


def _check_consumer_groups(
    schedule: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem
) -> str | None:
    if not schedule.persistent:
        return "consumer groups alternate over the tiles of a persistent grid"
    if layout.threads != WARPGROUP_THREADS or schedule.consumer_groups > MAX_CONSUMER_GROUPS:
        return (
            f"{schedule.consumer_groups} consumer groups of {layout.threads} threads: there are "
            f"{MAX_CONSUMER_GROUPS} at most, of {WARPGROUP_THREADS}"
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


def holds_warpgroup_sums(layout: BlockedLayout) -> bool:
    """Whether a layout is that of `wgmma`'s accumulators: rows of whole warpgroups, columns of one warp."""
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.within(d), layout.vector[d]) for d in (m, n)]
    is_spread = layout.warps[n] == 1 and layout.warps[m] % 4 == 0 and not layout.has_runs
    return held == [(8, 2, 1), (4, 1, 2)] and is_spread


def _check_tensor_cores(
    schedule: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem
) -> str | None:
    if reason := tensor_core_misfit(schedule.instruction, problem):
        return reason
    summed = schedule.k * schedule.promote
    if schedule.instruction == "wgmma" and problem.promotes and not 0 < summed <= LONGEST_FLOAT8_SUM:
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
        if instruction == "wgmma" and not all(problem.k_contiguous):
            return f"wgmma multiplies {name} only where k is contiguous in both operands"
        if instruction == "wgmma" and precision == TF32X3:
            return "wgmma has no registers for the parts of an operand that 3xtf32 is made of"
        return None
    return None if name in ("float16", "bfloat16") else f"{instruction} does not multiply {name} as {precision}"


MMA_K_BYTES = 32
"""Bytes along k of one tensor core instruction."""

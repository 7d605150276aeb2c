"""Tiles of contractions: layouts of accumulators for each instruction, as schedules."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES, SWIZZLE_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target.instructions import MMA_SYNC, SIMT, WGMMA

MMA_STEP_BYTES = 64
"""Bytes of one row of an operand in one step along k of `mma.sync`: two instructions deep in 16-bit types."""

RESULT_STAGES = 2
"""Subtiles of a result in shared memory on their way out: one is written while the other is read."""

FMA_STEP = 32
"""Elements of k in one step of SIMT products: near the square root of common extents, which keeps two-level sums
accurate."""

MOST_OF_THREAD, WIDE_FMA_TILE = 8, 128
"""Rows, and columns, of a SIMT product's tile that a thread has at most; half as many columns in tiles narrower than
`WIDE_FMA_TILE`, and where an element takes more than a register."""

FMA_WARPS = 4
"""Warps of a block that multiplies by SIMT instructions, one for each scheduler, if rows can be shared out so."""

MOST_SUMS = 128
"""Registers of a thread's sums from which on it has none to hold several steps along k of an operand."""

FLAGGED_ROWS = 4
"""Rows that a warp takes out of a flagged buffer at once, if it can: 8 of their columns are a line of 128 bytes in the
buffer."""


def wgmma_schedule(
    problem: ContractionProblem,
    m: int,
    n: int,
    *,
    stages: int = 4,
    split: int = 1,
    swapped: bool = False,
    atoms: int = 1,
    blocks_per_sm: int = 1,
    consumer_groups: int = 1,
) -> Schedule:
    """A tile for `wgmma`: a warpgroup has 64 rows, and where blocks or consumer groups share an SM 64 for each.

    A step along k is so many swizzle atoms of 128 bytes, after which sums are promoted if they must be.
    """
    batch, sharing = (1,) * len(problem.batch), blocks_per_sm * consumer_groups
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, m // (16 * sharing), 1),
        repeats=(*batch, sharing, n // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = atoms * SWIZZLE_BYTES // problem.element.bytes
    contraction = ContractionSchedule(
        step,
        WGMMA.name,
        stages,
        split,
        persistent=consumer_groups > 1,
        promote=int(problem.promotes),
        consumer_groups=consumer_groups,
        swapped=swapped,
    )
    resident = blocks_per_sm if blocks_per_sm > 1 else 0
    # Fragments go through a consumer group's epilogue one by one: the other group's products hide it, and few registers
    # are left beside 128 accumulators.
    order = "depth" if consumer_groups > 1 else "breadth"
    return Schedule((*batch, m, n), layout, order=order, blocks_per_sm=resident, contraction=contraction)


def mma_schedule(
    problem: ContractionProblem,
    m: int,
    n: int,
    *,
    stages: int = 3,
    split: int = 1,
    step_bytes: int = MMA_STEP_BYTES,
    wide: bool = False,
) -> Schedule:
    """A tile for `mma.sync`, and that many bytes of a row of an operand a step.

    Warps have up to 64 x 32 accumulators. With 64 x 64, if `wide`, they read the least from shared memory, and have no
    registers left for operands that are computed, or for where tiles overrun an operand.
    """
    rows = min(m, 64)
    warps = (m // rows, max(1, n // (64 if wide else 32)))
    columns = n // warps[1]
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, *warps),
        repeats=(*batch, rows // 16, columns // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = max(16, step_bytes // problem.element.bytes)
    return Schedule((*batch, m, n), layout, contraction=ContractionSchedule(step, MMA_SYNC.name, stages, split))


def fma_schedule(problem: ContractionProblem, m: int, n: int, *, stages: int = 2, split: int = 1) -> Schedule:
    """A tile for scalar multiply-adds: warps of 4 x 8 threads, each with up to 8 rows of up to 8 columns.

    A thread loads operands from shared memory as vectors of up to 16 bytes, along the rows (or columns) of operands
    that are contiguous so. Where k is contiguous, a thread loads several steps of one row at once, and neighbouring
    threads have neighbouring rows: rows that lie four apart are in the same banks. Threads whose sums, and sums of one
    step, fill most of their registers have none for several steps: such operands are transposed on their way to shared
    memory (`fuse-transpose-operands`). One block an SM is asked of ptxas, which otherwise takes too few registers and
    spills.
    """
    size = problem.accumulator.bytes
    columns = MOST_OF_THREAD if n >= WIDE_FMA_TILE and size <= REGISTER_BYTES else min(MOST_OF_THREAD // 2, n // 8)
    rows = min(MOST_OF_THREAD, m // 4)
    while rows > 2 and (m // (4 * rows)) * (n // (8 * columns)) < FMA_WARPS:
        rows //= 2
    plain = [source is None for source in problem.computed_from]
    narrow = problem.element.bytes < REGISTER_BYTES  # `cp.async` does not copy these one by one
    transposed_operands = not narrow and any(p and k for p, k in zip(plain, problem.k_contiguous, strict=True))
    transposed_operands &= 2 * rows * columns * size // REGISTER_BYTES >= MOST_SUMS
    beside = [not k or (transposed_operands and p) for p, k in zip(plain, problem.k_contiguous, strict=True)]
    run, width = (
        min(e, max(1, WIDEST_ACCESS // size)) if b else 1 for e, b in zip((rows, columns), beside, strict=True)
    )
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, width),
        lanes=(*batch, 4, 8),
        warps=(*batch, m // (4 * rows), n // (8 * columns)),
        repeats=(*batch, rows // run, columns // width),
        blocks=(*batch, 1, 1),
        run=(*batch, run, 1) if run > 1 else (),
    )
    contraction = ContractionSchedule(FMA_STEP, SIMT.name, stages, split, transposed_operands=transposed_operands)
    return Schedule((*batch, m, n), layout, blocks_per_sm=1, contraction=contraction)


def with_slices(schedule: Schedule, reduction: str = "grid_sync") -> Schedule:
    """The schedule with the partials of its splits combined by slices of rows; neighbouring threads take neighbouring
    words.
    """
    assert schedule.contraction is not None
    *batch, m, n = schedule.tile
    rows = schedule.contraction.slice_rows(m)
    threads = schedule.layout.threads
    width = next((w for w in (4, 2) if rows * n >= threads * w), 1)
    # A line of a flagged buffer holds this many rows of 8 columns.
    stacked = min(FLAGGED_ROWS, 1 << rows.bit_length() - 1) if reduction == "flagged" else 1
    lanes = min(WARP // stacked, 1 << (n // width).bit_length() - 1)
    warps_n = min(threads // WARP, max(1, n // (width * lanes)))
    warps_m = threads // WARP // warps_n
    lanes_m = WARP // lanes
    lead = (1,) * len(batch)
    layout = BlockedLayout(
        vector=(*lead, 1, width),
        lanes=(*lead, lanes_m, lanes),
        warps=(*lead, warps_m, warps_n),
        repeats=(*lead, -(-rows // (lanes_m * warps_m)), -(-n // (width * lanes * warps_n))),
        blocks=(*lead, 1, 1),
    )
    contraction = replace(schedule.contraction, reduction=reduction, second_stage_layout=layout)
    return replace(schedule, contraction=contraction)

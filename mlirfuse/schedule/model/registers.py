"""Registers of a thread, estimated before there is code: of rows, of persistent loops, and of contractions.

Those of rows and of loops are fitted to ptxas for sm_90a: over LayerNorms, RMSNorms and softmaxes in three types, rows
of 512 to 65536 elements split in many ways. `tests/unit/schedule/test_register_estimate.py` compares them with ptxas.
"""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.loops import padding, unrolled_rows
from mlirfuse.schedule.model.machine import REGISTER_BYTES, REGISTER_STEP, WARPGROUP, WARPGROUP_ROWS
from mlirfuse.schedule.model.residency import registers_shared_out
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

HELD_REGISTERS = 96
"""Registers of a thread for partial results and what is read, at most, where it reads all in a loop."""

MOST_ELEMENTS = 64
"""Elements of a row that a thread may hold in registers: the estimates hold up to here."""

ROW_BREADTH_BASE, ROW_DEPTH_BASE = 14, 18
"""Registers besides the elements: addresses, coordinates and row values."""

ROW_BREADTH_ELEMENT, ROW_BREADTH_COLUMN_ELEMENT = 1.2, 0.4
"""Registers an element: its value and what is being made of it; and more where column operands meet it."""

ROW_FREE_COLUMN_BYTES, ROW_WIDE_COLUMN = 8, 1.5
"""Bytes of column operands at an element that the above includes, and registers for each byte beyond."""

ROW_DEPTH_ELEMENT, ROW_DEPTH_LIVE, ROW_DEPTH_COLUMN = 0.25, 0.25, 0.025
"""Registers an element, for each byte of it that lives across a reduction, and for each byte of column operands."""

AHEAD = 2
"""Fragments spilled to shared memory that are being loaded while one is worked on."""

SPILLED_SHIFTED = 8
"""Registers for the ends of an unaligned row, where fragments are spilled to shared memory."""

RAGGED = 0.25
"""Registers an element of a fragment for the masks of a row that does not fill its threads' fragments."""

CLUSTER = 5
"""Registers for the addresses of other blocks' shared memory."""

SHIFTED, SHIFTED_COLUMN = 5, 2
"""Registers for the places and the ends of a row that is shifted; and for each byte of what is shifted into place."""

LINES = 4
"""Registers for the places and the masks of a row of whole vectors that is shifted."""

REALIGNED = 8
"""Registers for the places of the windows that rows are realigned from and to."""

SINGLE_WARP = 7
"""Registers of a row that one warp holds: no barrier keeps what is loaded for later behind the reduction."""

KEPT_COLUMN, SUMMED_COLUMN = 8, 4
"""Registers for each column beside the first of which a thread has elements, where several warps reduce columns
breadth-first: where elements wait for the result, and where none does."""

LOOP_BREADTH_BASE, LOOP_BREADTH_ELEMENT = 16, 2.1
"""Registers of a thread that works breadth-first: addresses and row values, and what each register of an element's
accumulators, packed reads and columns takes with what is computed from it."""

LOOP_DEPTH_BASE, LOOP_DEPTH_ELEMENT, LOOP_DEPTH_READ = 32, 0.25, 1 / 8
"""Registers of a thread that works depth-first, besides an element's accumulators and columns: base, for each element,
and for each byte that is read of it."""

LOOP_PADDED_BASE, LOOP_BREADTH_PADDED, LOOP_DEPTH_PADDED = 12, 0.75, 1.5
"""Registers for the masks of a row that does not fill its threads: base, and for each element in either order."""

CLUSTER_REGISTERS = {"breadth": 4, "depth": 12}
"""Registers for the addresses of other blocks' shared memory and mbarriers, by order."""

CLUSTER_SINGLE = 8
"""More of these breadth-first where a thread has single elements, each with a mask and an address of its own."""

UNROLL_BASE, UNROLL_STREAMED, UNROLL_FOURTH, UNROLL_PADDED, UNROLL_READ, UNROLL_CARRIED = 12, 8, 10, 13, 4.1, 0.5
"""Register model for more than one row a thread: base, tiles that leave the L2 first, each row beyond the third of
these, each row beyond the second where rows do not fill their threads, per 4 bytes read of an element, per 4 bytes of
an element's accumulators."""

PRODUCT_REGISTERS = 26
"""Registers beside its accumulators that ptxas wants for a `wgmma` (it refuses kernels with fewer: C7602)."""

MOST_CONSUMER_REGISTERS, PRODUCER_REGISTERS = 240, 40
"""Registers that `setmaxnreg` gives a consumer's thread at most, and a producer's thread."""

CONSUMER_REGISTERS = 472
"""Of one thread of each consumer warpgroup together, as schedules are proposed. `warpgroup_registers` rounds as the
machine does, and finds fewer for several warpgroups."""

OTHER_REGISTERS = 40
"""Registers of a consumer's thread, or of a SIMT product's, that are no accumulators."""

PROMOTED_STEP_SETS, PROMOTED_SETS = 3, 2
"""Sets of accumulators of a thread: where every step's sums are promoted while the next step's are under way, and where
sums are promoted after several steps."""


def registers_per_thread(problem: Problem, layout: BlockedLayout, order: str, shared_spill: int = 0) -> int:
    """Estimated registers of a thread of a persistent kernel; see `Schedule` for the orders and for `shared_spill`."""
    return round(problem.register_scale * _uncorrected(problem, layout, order, shared_spill))


def uncorrected_registers(schedule: Schedule, problem: Problem) -> int | None:
    """The estimate for a schedule that assembler's reports have not corrected; None where there is no estimate."""
    layout, loop = schedule.layout, schedule.persistent_loop
    if loop is not None and problem.persistent_loop is not None:
        return loop_registers(problem, problem.persistent_loop, layout, schedule.order, loop.columns)
    if schedule.persistence != "registers" or schedule.grid_persistent is not None or not problem.reduced:
        return None
    return _uncorrected(problem, layout, schedule.order, schedule.shared_spill)


def _uncorrected(problem: Problem, layout: BlockedLayout, order: str, shared_spill: int) -> int:
    """The estimate before the assembler's reports correct it."""
    width = max(layout.vector)
    held = layout.elements_per_thread - shared_spill * width
    extra = CLUSTER if layout.cluster > 1 else 0
    if layout.is_shifted_to_lines:
        extra += LINES
    elif layout.is_shifted:
        extra += SHIFTED + SHIFTED_COLUMN * problem.column_bytes + (SPILLED_SHIFTED if shared_spill else 0)
    elif layout.is_realigned:
        extra += REALIGNED + round(RAGGED * width)
    elif any(layout.extents[d] != problem.extents[d] for d in problem.reduced):
        extra += round(RAGGED * width)
    if all(layout.warps[d] * layout.blocks[d] == 1 for d in problem.reduced):
        extra += SINGLE_WARP
    if order == "breadth":
        element = ROW_BREADTH_ELEMENT + (ROW_BREADTH_COLUMN_ELEMENT if problem.column_bytes else 0.0)
        wide = ROW_WIDE_COLUMN * max(0, problem.column_bytes - ROW_FREE_COLUMN_BYTES)
        kept = prod(n * layout.repeats[d] for d, n in enumerate(layout.vector) if d not in problem.reduced)
        exchanges = any(layout.warps[d] > 1 for d in problem.reduced)
        columns = (KEPT_COLUMN if problem.live_bytes else SUMMED_COLUMN) * (kept - 1) if exchanges else 0
        return round(ROW_BREADTH_BASE + held * element + wide) + columns + extra
    # What no reduction's result meets again is still read twice inside of a joint reduction.
    live = max(problem.live_bytes, problem.read_bytes / 2)
    live = max(live, REGISTER_BYTES / width) if problem.live_bytes else live  # a fragment takes whole registers
    element = ROW_DEPTH_ELEMENT + ROW_DEPTH_LIVE * live + ROW_DEPTH_COLUMN * problem.column_bytes
    loading = AHEAD * width * problem.read_bytes / 4 + problem.column_bytes / 4 if shared_spill else 0
    return round(ROW_DEPTH_BASE + held * element + loading) + extra


def loop_registers(
    problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout, order: str, columns: str
) -> int:
    """Estimated registers of a thread of a persistent loop over tiles of a layout; `columns` says where a block keeps
    what all its tiles share, in `registers` or `shared` memory.
    """
    in_registers = persistent_loop.column_bytes if columns == "registers" else 0
    carried = (persistent_loop.accumulator_bytes + in_registers) / 4
    unrolled = unrolled_rows(persistent_loop, layout)
    if unrolled > 1:
        base = UNROLL_BASE + (CLUSTER_REGISTERS[order] if layout.cluster > 1 else 0)
        full = UNROLL_STREAMED + UNROLL_FOURTH * max(0, unrolled - 3)
        base += full if padding(problem, persistent_loop, layout) == 1 else UNROLL_PADDED * (unrolled - 2)
        return round(
            base
            + (UNROLL_READ * problem.read_bytes / 4 + UNROLL_CARRIED * carried / unrolled) * layout.elements_per_thread
        )
    if order == "breadth":
        base, each = LOOP_BREADTH_BASE, LOOP_BREADTH_ELEMENT * (carried + problem.read_bytes / 4)
    else:
        base, each = LOOP_DEPTH_BASE, carried + LOOP_DEPTH_ELEMENT + LOOP_DEPTH_READ * problem.read_bytes
        if persistent_loop.wide:  # a part that leaves in the loop is there beside the next one's start
            each += persistent_loop.accumulator_bytes / 4
    if any(layout.extents[d] != extent for d, extent in enumerate(problem.extents) if d not in persistent_loop.dims):
        base, each = base + LOOP_PADDED_BASE, each + (LOOP_BREADTH_PADDED if order == "breadth" else LOOP_DEPTH_PADDED)
    if layout.cluster > 1:
        base += CLUSTER_REGISTERS[order] + (CLUSTER_SINGLE if problem.vector == 1 and order == "breadth" else 0)
    registers = base + each * layout.elements_per_thread
    return round(registers)


def warpgroup_registers(consumers: int, producers: int, blocks_per_sm: int, target: Target) -> tuple[int, int]:
    """Registers of a consumer's and of a producer's threads, in blocks of so many warpgroups that multiply, and that
    copy; blocks have all of the SM's.
    """
    warpgroups = consumers + producers
    start = registers_shared_out(warpgroups * WARPGROUP, blocks_per_sm, target)
    left = (start * warpgroups - PRODUCER_REGISTERS * producers) // consumers
    return min(left // REGISTER_STEP * REGISTER_STEP, MOST_CONSUMER_REGISTERS), PRODUCER_REGISTERS


def consumer_registers(warpgroups: int) -> int:
    """Registers of a consumer's thread as heuristics take them, where so many warpgroups multiply."""
    return min(MOST_CONSUMER_REGISTERS, CONSUMER_REGISTERS // warpgroups)


def accumulator_registers(layout: BlockedLayout, accumulator_bytes: int) -> int:
    """Registers of a thread's accumulators, of so many bytes each."""
    return layout.elements_per_thread * accumulator_bytes // REGISTER_BYTES


def fits_promoted(m: int, n: int, sets: int) -> bool:
    """Whether threads have registers for several sets of the accumulators of a tile of m x n.

    A warpgroup has 64 rows, of which a thread has n / 2 elements.
    """
    return sets * n // 2 + OTHER_REGISTERS <= consumer_registers(m // WARPGROUP_ROWS)


def fits_simt(layout: BlockedLayout, accumulator_bytes: int, target: Target) -> bool:
    """Whether threads of SIMT products have registers for their accumulators, and for the sums of one step."""
    most = min(target.max_registers_per_thread, target.registers_per_sm // layout.threads)
    return 2 * accumulator_registers(layout, accumulator_bytes) + OTHER_REGISTERS <= most

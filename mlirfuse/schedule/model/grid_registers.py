"""Registers of a thread of a persistent loop, estimated before there is code; fitted to ptxas 13.0 for sm_90a."""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.loops import padding, unrolled_rows
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem

BREADTH_BASE, BREADTH_ELEMENT = 16, 2.1
"""Registers of a thread that works breadth-first: addresses and row values, and what each register of an element's
accumulators, packed reads and columns takes with what is computed from it."""

DEPTH_BASE, DEPTH_ELEMENT, DEPTH_READ = 32, 0.25, 1 / 8
"""Registers of a thread that works depth-first, besides an element's accumulators and columns: base, for each element,
and for each byte that is read of it."""

PADDED_BASE, BREADTH_PADDED, DEPTH_PADDED = 12, 0.75, 1.5
"""Registers for the masks of a row that does not fill its threads: base, and for each element in either order."""

CLUSTER_REGISTERS = {"breadth": 4, "depth": 12}
"""Registers for the addresses of other blocks' shared memory and mbarriers, by order."""

CLUSTER_SINGLE = 8
"""More of these breadth-first where a thread has single elements, each with a mask and an address of its own."""

UNROLL_BASE, UNROLL_STREAMED, UNROLL_FOURTH, UNROLL_PADDED, UNROLL_READ, UNROLL_CARRIED = 12, 8, 10, 13, 4.1, 0.5
"""Register model for more than one row a thread: base, tiles that leave the L2 first, each row beyond the third of
these, each row beyond the second where rows do not fill their threads, per 4 bytes read of an element, per 4 bytes of
an element's accumulators."""


def loop_registers(
    problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout, order: str, columns: str
) -> int:
    """Estimated registers of a thread of a persistent loop.

    Args:
        problem: the kernel.
        persistent_loop: the reductions that the grid works on.
        layout: of a tile.
        order: `breadth` or `depth`, see `Schedule`.
        columns: where a block keeps what all its tiles share, `registers` or `shared`.
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
        base, each = BREADTH_BASE, BREADTH_ELEMENT * (carried + problem.read_bytes / 4)
    else:
        base, each = DEPTH_BASE, carried + DEPTH_ELEMENT + DEPTH_READ * problem.read_bytes
        if persistent_loop.wide:  # a part that leaves in the loop is there beside the next one's start
            each += persistent_loop.accumulator_bytes / 4
    if any(layout.extents[d] != extent for d, extent in enumerate(problem.extents) if d not in persistent_loop.dims):
        base, each = base + PADDED_BASE, each + (BREADTH_PADDED if order == "breadth" else DEPTH_PADDED)
    if layout.cluster > 1:
        base += CLUSTER_REGISTERS[order] + (CLUSTER_SINGLE if problem.vector == 1 and order == "breadth" else 0)
    registers = base + each * layout.elements_per_thread
    return round(registers)

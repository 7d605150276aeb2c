"""Schedules of kernels that sum up an operand's elements beside the product: what is legal, and what it takes."""

from __future__ import annotations

from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem

SUM_INSTRUCTIONS = 2
"""Of a thread for each element and sum: a conversion and an addition."""

STAGED_SIZE = 2
"""Bytes of the elements that `ldmatrix` reads from swizzled stages; elements of tf32 are rounded there."""


def check_sums(contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
    """Why a kernel of this schedule cannot sum up an operand, or None, as where it sums up none."""
    if not any(problem.operand_sums):
        return None
    number = 0 if problem.operand_sums[0] else 1
    if contraction.swapped != bool(number):
        return "the rows of its tiles are not those of the operand that is summed up"
    columns, _ = sum_columns(contraction, layout)
    if contraction.k % columns or columns % layout.vector[-1]:
        return f"steps of {contraction.k} along k are not whole times the threads of {columns} columns"
    serial = contraction.split > 1 and contraction.reduction == "serial"
    if serial and columns < layout.repeat_stride(layout.rank - 1):
        return f"{columns} columns of partial sums leave threads over, which would read what others add to"
    if not contraction.family.is_asynchronous:
        return None
    size = problem.element.bytes
    if size != STAGED_SIZE:
        return f"operands of {size} bytes are not summed up from swizzled stages"
    if problem.k_contiguous[number] and contraction.k * size != SWIZZLE_BYTES:
        return f"an operand is summed up from one swizzle atom a row, and steps have {contraction.k * size} bytes"
    return None


def sum_columns(contraction: ContractionSchedule, layout: BlockedLayout) -> tuple[int, int]:
    """Columns of partial sums, which the threads of a row have side by side; and elements of k that are loaded at once,
    twice as many where these are whole matrices of `ldmatrix`.
    """
    columns = min(contraction.k, layout.repeat_stride(layout.rank - 1))
    twice = contraction.k % (2 * columns) == 0 and layout.extents[-1] >= 2 * columns
    return columns, 2 * columns if twice else columns


def summed_elements(grid: ContractionGrid) -> int:
    """Elements that a step adds to sums of an operand."""
    return grid.contraction.k * grid.tile[0] * sum(grid.problem.operand_sums)


def summing_seconds(grid: ContractionGrid) -> tuple[float, float]:
    """Times of a step's sums: of shared memory, which is read again, and of the SM's schedulers."""
    elements = summed_elements(grid)
    size = grid.problem.element.bytes if elements else 0
    read = grid.contraction.k * grid.tile[0] * size
    return read / grid.machine.shared_bandwidth_per_sm, SUM_INSTRUCTIONS * elements / grid.machine.issue_per_sm

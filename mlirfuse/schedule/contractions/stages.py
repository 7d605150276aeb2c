"""Shared memory of a contraction: the ring of stages, operands that the block computes, and what is beside them."""

from __future__ import annotations

from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

MOST_STAGES = 16
"""Stages of a ring that tensor maps fill, at most."""

STAGED_BYTES = 224 * 1024
"""Bytes of shared memory of the ring, of staged results and of the epilogue's arguments together."""

RESULT_STAGES = 2
"""Subtiles of a result in shared memory on their way out: one is written while the other is read."""

MOST_COLUMNS = 64
"""Most tile columns of a transposed subtile: as many as other subtiles have of 16-bit elements."""

FRAGMENT = 8
"""Columns of an accumulator that threads hold together."""

ROW_PADDING = 16
"""Bytes between rows of a stage that threads fill, which put eight rows of a column into different banks."""

SPARE_BYTES = 1024
"""Bytes of shared memory beside the ring for exchanges between the blocks of a split."""

COMPUTED_SLOTS = 2
"""Steps of a computed operand that shared memory holds, beside the ring of what the operand is computed from."""


def fits_block(schedule: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether a block has shared memory for its ring, for operands that it computes, and for reductions of its tile."""
    return block_bytes(schedule, problem) <= target.shared_per_block


def block_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory of a block: its ring, operands that it computes, reductions of its tile, and what is spare."""
    contraction = schedule.contraction_part
    padding = 0 if contraction.family.is_asynchronous else ROW_PADDING
    own = contraction.k * problem.element.bytes + padding
    ring = 0
    extents = reversed(schedule.tile[-2:]) if contraction.swapped else schedule.tile[-2:]
    for rows, sources in zip(extents, problem.sources, strict=True):
        staged = sum(contraction.k * size + padding for size in sources)
        ring += rows * (contraction.stages * staged + COMPUTED_SLOTS * own if sources else contraction.stages * own)
    return ring + exchanged_bytes(schedule, problem) + argument_stage_bytes(schedule, problem) + SPARE_BYTES


def staged_arguments(schedule: Schedule, problem: ContractionProblem) -> list[int]:
    """Bytes of an element of the epilogue's arguments that have stages of their own: those whose tile has whole swizzle
    atoms a row. Single bytes are not transposed on the way.
    """
    contraction, columns = schedule.contraction_part, schedule.tile[-1]
    if not contraction.argument_stages:
        return []
    return [
        each
        for each in problem.staged_arguments
        if columns * each % SWIZZLE_BYTES == 0 and (each > 1 or not contraction.swapped)
    ]


def argument_stage_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory of these stages: each consumer group's whole tile."""
    rows, columns = schedule.tile[-2:]
    return schedule.contraction_part.consumer_groups * rows * columns * sum(staged_arguments(schedule, problem))


def subtile_columns(columns: int, element_bytes: int, *, transposed: bool) -> int:
    """Columns of a tile that a subtile of its result has: 128 bytes of them. A transposed one has these as its rows:
    the tile's are divided among the fewest subtiles of at most `MOST_COLUMNS`.
    """
    if not transposed:
        return SWIZZLE_BYTES // element_bytes
    subtiles = -(-columns // MOST_COLUMNS)
    return -(-columns // (subtiles * FRAGMENT)) * FRAGMENT


def result_stages(subtiles: int, room: int, sharing: int, *, whole: bool) -> int:
    """Subtiles of a result that a consumer group has in shared memory; 0 where there is no room for one.

    Args:
        subtiles: that its tile is divided into.
        room: subtiles for which shared memory is left.
        sharing: results that share it, this one among them.
        whole: whether all subtiles shall have a stage, in which an argument comes to the epilogue.
    """
    most = subtiles if whole else min(RESULT_STAGES, subtiles)
    return min(most, max(min(1, room), room // sharing))


def is_residual_staged(schedule: Schedule, problem: ContractionProblem) -> bool:
    """Whether the epilogue's argument that has the type and order of a result comes through the stages of that result,
    of which each of its subtiles needs one.
    """
    contraction = schedule.contraction_part
    if not contraction.family.is_asynchronous or not problem.residual_bytes:
        return False
    count, each = _residual_subtiles(schedule, problem)
    taken = block_bytes(schedule, problem) - SPARE_BYTES
    room = STAGED_BYTES // max(1, schedule.blocks_per_sm) - taken
    return result_stages(count, room // each, problem.work.results, whole=contraction.argument_stages) == count


def result_stage_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory of the stages of results of a schedule with `argument_stages`."""
    contraction, rows = schedule.contraction_part, schedule.tile[-2]
    if not problem.residual_bytes:
        return RESULT_STAGES * contraction.consumer_groups * rows * SWIZZLE_BYTES
    count, each = _residual_subtiles(schedule, problem)
    return max(RESULT_STAGES, count) * each * problem.work.results


def _residual_subtiles(schedule: Schedule, problem: ContractionProblem) -> tuple[int, int]:
    """Subtiles of a result of the residual's type, and bytes of one in all consumer groups."""
    contraction, (rows, columns) = schedule.contraction_part, schedule.tile[-2:]
    size = problem.residual_bytes
    wide = subtile_columns(columns, size, transposed=contraction.swapped)
    return -(-columns // wide), contraction.consumer_groups * rows * wide * size


def exchanged_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory through which the warps of a block add up reductions of its tile."""
    over = problem.reduced_over[::-1] if schedule.contraction_part.swapped else problem.reduced_over
    dims = [d for d, reduced in enumerate(over, len(problem.batch)) if reduced]
    return problem.accumulator_bytes * schedule.layout.exchanged(dims)

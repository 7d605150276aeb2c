"""Shared memory of a contraction: the ring of stages, operands that the block computes, and what is beside them."""

from __future__ import annotations

from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

MOST_STAGES = 16
"""Stages of a ring that tensor maps fill, at most."""

RESULT_STAGES = 2
"""Subtiles of a result in shared memory on their way out: one is written while the other is read."""

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


def exchanged_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory through which the warps of a block add up reductions of its tile."""
    over = problem.reduced_over[::-1] if schedule.contraction_part.swapped else problem.reduced_over
    dims = [d for d, reduced in enumerate(over, len(problem.batch)) if reduced]
    return problem.accumulator_bytes * schedule.layout.exchanged(dims)

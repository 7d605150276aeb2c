"""Estimated times of a contraction that computes an operand itself, and of one that reads it: pure functions of
(problem, target).
"""

from __future__ import annotations

from mlirfuse.schedule.contractions.cost import contraction_seconds
from mlirfuse.schedule.contractions.heuristics import choose_contraction
from mlirfuse.schedule.model.disagreeing import CONTRACTION_LAUNCH
from mlirfuse.schedule.model.speeds import DRAM_BYTES
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.target import Target


def seconds_together(problem: ContractionProblem, target: Target) -> float:
    """Estimated time of a contraction that computes operands itself, with the best schedule for that."""
    return contraction_seconds(choose_contraction(problem, target), problem, target)


def seconds_apart(problem: ContractionProblem, moved_bytes: int, target: Target) -> float:
    """Estimated time of a kernel that reads and writes `moved_bytes`, and then of the contraction that is left."""
    return CONTRACTION_LAUNCH + moved_bytes / DRAM_BYTES + seconds_together(problem, target)

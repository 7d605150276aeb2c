"""How many parts reductions are computed in."""

from __future__ import annotations

from math import prod

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.reduction_parts import best_parts, first_problem, second_problem
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
MACHINE = machine_of(TARGET, "NVIDIA H200")


def _sums(extents: tuple[int | None, ...], reduced: set[int]) -> Problem:
    """Sums of bfloat16 over some dimensions."""
    kept = frozenset(range(len(extents))) - reduced
    return Problem(
        extents=extents,
        reduced=frozenset(reduced),
        vector_dim=len(extents) - 1,
        vector=8,
        full_bytes=2,
        read_bytes=2,
        dependent_reductions=1,
        reductions=(RowReduction(frozenset(reduced), kept, 4),),
        instructions=1.0,
    )


def test_few_results_of_much_data_have_parts() -> None:
    best = best_parts(_sums((8, 1 << 15, 64), {1}), TARGET, MACHINE, (1,))
    assert best is not None
    assert best.parts >= 8
    assert (1 << 15) % best.parts == 0


def test_only_divisors_are_parts() -> None:
    best = best_parts(_sums((4, 3 * 7 * 11 * 13, 64), {1}), TARGET, MACHINE, (1,))
    assert best is not None
    assert (3 * 7 * 11 * 13) % best.parts == 0
    assert best_parts(_sums((4, 65537, 64), {1}), TARGET, MACHINE, (1,)) is None  # a prime


def test_a_lone_dimension_is_not_kept_whole() -> None:
    """Its kernel would reduce nothing."""
    best = best_parts(_sums((16, 64), {0}), TARGET, MACHINE, (0,))
    assert best is None or best.parts < 16


def test_different_reductions_have_no_parts() -> None:
    problem = _sums((64, 64, 64), {0})
    other = RowReduction(frozenset({1}), frozenset({0, 2}), 4)
    mixed = Problem(**{**vars(problem), "reductions": (*problem.reductions, other), "reduced": frozenset({0, 1})})
    assert best_parts(mixed, TARGET, MACHINE, (0, 1)) is None


@pytest.mark.parametrize(("dim", "parts"), [(0, 4), (0, 24), (2, 8), (2, 64)])
def test_parts_have_all_elements(dim: int, parts: int) -> None:
    problem = _sums((24, 5, 64), {0, 2})
    first, second = first_problem(problem, dim, parts), second_problem(problem, parts)
    assert prod(n or 1 for n in first.extents) == 24 * 5 * 64
    assert first.extents[dim] == parts
    assert dim not in first.reduced
    (reduction,) = first.reductions
    assert reduction.dims == first.reduced
    assert dim in reduction.kept
    assert second.extents == (parts, 5)
    assert second.reduced == {0}

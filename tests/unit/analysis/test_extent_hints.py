"""What is expected of run-time extents: how it gets from specs to the choice of schedules and of fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.argument_specs import spec_text
from mlirfuse.compiler.problems import KernelProblems, expected_shapes, problems_of
from mlirfuse.errors import ArgumentError
from mlirfuse.schedule.choice.records import RecordKey
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import target_of

HOPPER = target_of("sm_90a")


def rotary(x: Any, c: Any) -> Any:
    return mf.astype(mf.astype(x, mf.float32) * c[:, None], mf.bfloat16)


def column_norm(x: Any) -> Any:
    return x / mf.sqrt(mf.sum(x * x, axis=0))


def lowered(fn: Callable[..., Any], *specs: mf.TensorSpec, **options: Any) -> Any:
    return mf.fuse(fn, target="sm_90a", **options).lower(*specs)


def rotary_specs(*hints: int | None) -> list[mf.TensorSpec]:
    rows, heads = hints
    x = mf.TensorSpec(("n", "h", 64), mf.bfloat16, hints=(rows, heads, None))
    return [x, mf.TensorSpec(("n", 64), mf.float32, hints=(rows, None))]


def test_hints_reach_the_problem_of_a_kernel() -> None:
    (problem,) = problems_of(lowered(rotary, *rotary_specs(8192, 32))).values()
    assert isinstance(problem, Problem)
    assert (problem.extents, problem.hints) == ((None, None, 64), (8192, 32, None))
    assert with_extents(problem).extents == (8192, 32, 64)


def test_what_nobody_expects_is_assumed_beside_what_is_known() -> None:
    (problem,) = problems_of(lowered(rotary, *rotary_specs(None, 32))).values()
    assert isinstance(problem, Problem)
    assert with_extents(problem).extents == ((1 << 24) // (32 * 64), 32, 64)


def test_intermediate_results_have_hints_too() -> None:
    """The second kernel reads only what the first one made."""
    spec = mf.TensorSpec((None, 1 << 16, 64), mf.float32, hints=(2, None, None))
    problems = problems_of(lowered(lambda x: mf.sum(x, axis=1), spec))
    assert len(problems) == 2
    for problem in problems.values():
        assert isinstance(problem, Problem)
        assert [hint for extent, hint in zip(problem.extents, problem.hints, strict=True) if extent is None] == [2]


def test_hints_reach_the_problem_of_a_product() -> None:
    specs = [mf.TensorSpec((None, 64), mf.float16, hints=(7, None)), mf.TensorSpec((128, 64), mf.float16)]
    (problem,) = problems_of(lowered(lambda x, w: x @ w.mT, *specs)).values()
    assert isinstance(problem, ContractionProblem)
    assert (problem.m, problem.expected) == (None, (7, 128))


def test_a_call_may_have_other_extents_than_the_kernels_were_chosen_for() -> None:
    problems = KernelProblems(lowered(rotary, *rotary_specs(8192, 32)))
    (problem,) = problems.of([(5, 7, 64), (5, 64)]).values()
    assert problem.hints == (5, 7, None)


def test_neither_specs_nor_records_know_of_hints() -> None:
    with_hints, without = (lowered(rotary, *rotary_specs(*hints)) for hints in ((8192, 32), (None, None)))
    assert rotary_specs(8192, 32) == rotary_specs(None, None)
    (one,), (other,) = problems_of(with_hints).values(), problems_of(without).values()
    assert one != other
    assert RecordKey(one, HOPPER).text == RecordKey(other, HOPPER).text
    assert "hints" not in RecordKey(one, HOPPER).text


def test_schedules_are_chosen_for_what_is_expected() -> None:
    tiles = {}
    for hints in ((65536, 4), (65536, 4), (None, None)):
        (schedule,) = lowered(rotary, *rotary_specs(*hints)).compile(choose_again=False).schedules.values()
        tiles.setdefault(hints, set()).add(schedule.tile)
    assert all(len(found) == 1 for found in tiles.values())  # the same hints, the same schedules
    ((_, expected, _),), ((_, unknown, _),) = tiles.values()
    assert expected <= 4 < unknown


def test_kernels_are_chosen_for_what_is_expected() -> None:
    """What few rows need is read by blocks that each have some columns; many rows keep a whole grid busy."""
    few, many = (
        lowered(column_norm, mf.TensorSpec((None, 512), mf.float32, hints=(n, None))).compile(choose_again=False)
        for n in (2, 1 << 20)
    )
    first = [next(iter(compiled.schedules.values())) for compiled in (few, many)]
    assert [schedule.persistent_loop is not None for schedule in first] == [False, True]


def test_arrays_are_hints() -> None:
    found = lowered(rotary, np.zeros((4, 6, 64), np.float32), np.zeros((4, 64), np.float32))
    assert expected_shapes(found) == [(4, 6, 64), (4, 64)]
    assert "fuse.extent_hints = array<i64: 4, 6, 0>" in found.as_text("linalg")


def test_explain_says_what_was_expected() -> None:
    text = lowered(rotary, *rotary_specs(8192, 32)).compile(choose_again=False).explain()
    assert "chosen and predicted for x.shape[0] = 8192, x.shape[1] = 32, c.shape[0] = 8192, which run time" in text
    assert spec_text(rotary_specs(8192, None)[0]) == "bfloat16[n=8192, h, 64]"


@pytest.mark.parametrize("hints", [(1,), (1, 0), (1, -3), (1, "n")], ids=str)
def test_hints_are_extents(hints: tuple[Any, ...]) -> None:
    with pytest.raises(ArgumentError, match="hints"):
        mf.TensorSpec((None, None), mf.float32, hints=hints)

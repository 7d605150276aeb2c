"""What follows a contraction in its kernel, as heuristics see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem, EpilogueWork

ROWS, COLUMNS = 128, 256


def problem_of(fn: Callable[..., Any], *specs: mf.TensorSpec) -> ContractionProblem:
    (found,) = problems_of(mf.fuse(fn, target="sm_90a").lower(*specs)).values()
    assert isinstance(found, ContractionProblem)
    return found


def half(*shape: int) -> mf.TensorSpec:
    return mf.TensorSpec(shape, mf.bfloat16)


def single(*shape: int) -> mf.TensorSpec:
    return mf.TensorSpec(shape, mf.float32)


X, W = half(ROWS, 64), half(64, COLUMNS)


@pytest.mark.parametrize(
    ("fn", "more", "work"),
    [
        (lambda x, w: x @ w, (), EpilogueWork(2)),
        (lambda x, w: mf.matmul(x, w, dtype="float32"), (), EpilogueWork(4)),
        (lambda x, w, r: x @ w + r, (half(ROWS, COLUMNS),), EpilogueWork(2, 2, 1, 1)),
        (lambda x, w, r: mf.matmul(x, w, dtype="float32") * r, (single(ROWS, COLUMNS),), EpilogueWork(4, 4, 1, 1)),
        (lambda x, w, b: x @ w + b, (half(COLUMNS),), EpilogueWork(2, 0, 0, 1)),  # a row that all tiles read
    ],
)
def test_bytes_and_instructions_of_an_element(
    fn: Callable[..., Any], more: tuple[mf.TensorSpec, ...], work: EpilogueWork
) -> None:
    assert problem_of(fn, X, W, *more).work == work


def test_special_functions_count_by_themselves() -> None:
    work = problem_of(lambda x, w: mf.exp(mf.matmul(x, w, dtype="float32")), X, W).work
    assert (work.written, work.special) == (4, 1)
    assert work.instructions > 1


def test_an_argument_that_several_products_read_counts_for_each_in_part() -> None:
    found = problem_of(lambda x, w, r: x @ w + r, half(4, ROWS, 64), half(4, 64, COLUMNS), half(ROWS, COLUMNS))
    assert found.work == EpilogueWork(2, 0.5, 1, 1)


def test_operands_may_be_one_array() -> None:
    assert problem_of(lambda x: x.T @ x, X).one_array
    assert not problem_of(lambda x, w: x @ w, X, W).one_array


def test_a_product_that_is_only_stored_is_the_usual_problem() -> None:
    """Under which a record of tuning is found."""
    assert problem_of(lambda x, w: x @ w, X, W).epilogue is None
    assert problem_of(lambda x, w: mf.matmul(x, w, dtype="float32"), X, W).epilogue == EpilogueWork(4)

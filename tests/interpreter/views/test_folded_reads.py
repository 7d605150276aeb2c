"""Expressions that become constants only once a kernel is tiled: what was chosen for the reads that go still holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, row_schedule, specs_of
from tests.support.pairwise import combined

FOLDED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "a difference": (lambda x: x - x, 0),
    "a product with zero": (lambda x: x * 0, 0),
    "a remainder times zero": (lambda x: (x % x) * 0, 0),
    "a power": (lambda x: x**0, 1),
    "a comparison": (lambda x: (x == x).astype(mf.int32), 1),
    "a choice": (lambda x: mf.where(x == x, 3, x), 3),
    "limits that are one": (lambda x: mf.clip(x, 3, 3), 3),
    "a sum less its terms": (lambda x: (x + 1) - x - 1, 0),
}


def run_at_gpu(fn: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    module = module_at("gpu", fn, specs_of(arrays))
    function = next(f for f in module.body.operations if "fuse.results" in f.operation.attributes)
    return interpreter.run(module, function.operation.attributes["sym_name"].value, list(arrays))


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 10, shape).astype(np.int32)


@pytest.mark.parametrize("shape", [(33,), (5, 40), (7, 33), (3, 4099)])
@pytest.mark.parametrize("name", FOLDED)
def test_a_reduction_in_rows_that_start_anywhere(name: str, shape: tuple[int, ...]) -> None:
    """The row that says how rows are shifted was the one that is reduced."""
    fold, number = FOLDED[name]
    x = integers(*shape)

    def program(x: Any) -> Any:
        y = fold(x)
        return mf.min(y, axis=-1), mf.std(y, axis=-1, keepdims=True)

    least, deviation = run_at_gpu(program, x)
    np.testing.assert_array_equal(least, np.full(shape[:-1], number))
    np.testing.assert_allclose(deviation, np.zeros((*shape[:-1], 1)), atol=1e-6)


@pytest.mark.parametrize("shape", [(33,), (5, 40), (7, 33), (3, 4099)])
def test_rows_are_read_behind_a_reduction_that_reads_none(shape: tuple[int, ...]) -> None:
    """They lie at a phase of their own, and so do the numbers that all rows share."""
    x, w = integers(*shape), integers(shape[-1])

    def program(x: Any, w: Any) -> Any:
        y = x - x
        least = mf.min(y, axis=-1, keepdims=True)
        return y, least + x, least - w, mf.sum(x + least, axis=-1)

    nothing, row, shared, total = run_at_gpu(program, x, w)
    np.testing.assert_array_equal(nothing, np.zeros(shape))
    np.testing.assert_array_equal(row, x)
    np.testing.assert_array_equal(shared, np.broadcast_to(-w, shared.shape))
    np.testing.assert_array_equal(total, x.sum(axis=-1))


def test_a_shifted_layout_that_the_caller_chose() -> None:
    x = integers(6, 1001)
    schedule = row_schedule(1001, vector=4, warps=2, shifted=True)
    module = module_at("gpu", lambda x: mf.sum(x - x, axis=-1, keepdims=True) + x, specs_of([x]), schedule)
    function = next(f for f in module.body.operations if "fuse.results" in f.operation.attributes)
    (result,) = interpreter.run(module, function.operation.attributes["sym_name"].value, [x])
    np.testing.assert_array_equal(result, x)


@combined({"name": FOLDED}, turns={"rows": [8, 300]})
def test_an_operand_of_a_product_that_is_read_nowhere(name: str, rows: int) -> None:
    """What is left of it is a mask behind the last of 33 columns, which no read gives a layout."""
    fold, number = FOLDED[name]
    x, w = integers(rows, 33), integers(33, 24)
    product = run_at_gpu(lambda x, w: fold(x) @ w, x, w)[0]
    np.testing.assert_array_equal(product, np.full((rows, 33), number) @ w)
    turned = run_at_gpu(lambda x, w: w.T @ fold(x).T, x, w)[0]
    np.testing.assert_array_equal(turned, w.T @ np.full((33, rows), number))


def test_both_operands_of_a_product_are_masks() -> None:
    x = integers(32, 33)
    ones = lambda x: (x == x).astype(mf.int32)  # noqa: E731
    np.testing.assert_array_equal(run_at_gpu(lambda x: ones(x) @ ones(x).T, x)[0], np.full((32, 32), 33))
    np.testing.assert_array_equal(run_at_gpu(lambda x: ones(x) @ (x + 1).T, x)[0], np.ones((32, 33)) @ (x + 1).T)

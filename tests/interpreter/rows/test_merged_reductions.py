"""Reductions that need another one's result are merged with it only where both are of the same rows.

On square tensors, shapes do not tell which dimensions are meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

X = np.random.default_rng(0).normal(size=(48, 48)).astype(np.float32)


def mean(x: Any) -> Any:
    return mf.mean(x, axis=1, keepdims=True)


def transposed(x: Any) -> Any:
    return mf.permute_dims(x, (1, 0))


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "squares of transposed differences": (
        lambda x: mf.sum(transposed(x - mean(x)) ** 2, axis=1),
        lambda x: ((x - x.mean(1, keepdims=True)) ** 2).sum(0),
    ),
    "exponentials of transposed differences": (
        lambda x: mf.sum(mf.exp(transposed(x - mf.max(x, axis=1, keepdims=True))), axis=1),
        lambda x: np.exp(x - x.max(1, keepdims=True)).sum(0),
    ),
    "differences from the means of other rows": (
        lambda x: mf.mean((x - mf.mean(x, axis=1)) ** 2, axis=1),
        lambda x: ((x - x.mean(1)) ** 2).mean(1),
    ),
    "differences of what is cast, and of no mean": (
        lambda x: mf.sum((x - mf.astype(mf.astype(x, mf.float16), mf.float32)) ** 2, axis=1),
        lambda x: ((x - x.astype(np.float16)) ** 2).sum(1),
    ),
    "differences of a transposed argument": (
        lambda x: mf.mean((transposed(x) - mean(x)) ** 2, axis=1),
        lambda x: ((x.T - x.mean(1, keepdims=True)) ** 2).mean(1),
    ),
    "products of differences and transposed ones": (
        lambda x: mf.sum((x - mean(x)) * transposed(x - mean(x)), axis=1),
        lambda x: ((d := x - x.mean(1, keepdims=True)) * d.T).sum(1),
    ),
}


def across(x: Any) -> Any:
    return mf.permute_dims(x, (2, 1, 0))


@pytest.mark.parametrize(
    ("fn", "reference"),
    [
        (
            lambda x: mf.sum(across(x - mean(x)) ** 2, axis=1),
            lambda x: ((x - x.mean(1, keepdims=True)) ** 2).sum(1).T,
        ),
        (
            lambda x: mf.sum(mf.exp(across(x - mf.max(x, axis=1, keepdims=True))), axis=1),
            lambda x: np.exp(x - x.max(1, keepdims=True)).sum(1).T,
        ),
    ],
    ids=["squares", "exponentials"],
)
def test_results_in_another_order_stay_apart(fn: Callable[..., Any], reference: Callable[..., Any]) -> None:
    x = np.random.default_rng(1).normal(size=(6, 8, 6)).astype(np.float32)
    np.testing.assert_allclose(mf.fuse(fn, target="interpret")(x), reference(x.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_reductions_of_other_rows_stay_apart(case: tuple[Callable[..., Any], Callable[..., Any]]) -> None:
    fn, reference = case
    expected = reference(X.astype(np.float64))
    np.testing.assert_allclose(mf.fuse(fn, target="interpret")(X), expected, rtol=1e-5, atol=1e-4)

"""Reductions of rows whose elements are all one number, or do not depend on their column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of

X = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=8).astype(np.float32)

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a sum": (lambda x, y: mf.sum(mf.full_like(x, 2.0), axis=1), lambda x, y: np.full(8, 128.0)),
    "a sum over rows": (lambda x, y: mf.sum(mf.full_like(x, 2.0), axis=0) + 1, lambda x, y: np.full(64, 17.0)),
    "a count": (lambda x, y: mf.sum(mf.where(x > 0, 1.0, 1.0), axis=1), lambda x, y: np.full(8, 64.0)),
    "a mean": (lambda x, y: mf.mean(mf.ones_like(x), axis=1, keepdims=True) * x, lambda x, y: x),
    "a variance": (lambda x, y: mf.var(mf.full_like(x, 3.0), axis=1, keepdims=True) * x, lambda x, y: 0 * x),
    "what becomes a constant": (
        lambda x, y: mf.not_equal(n := mf.sum(x, axis=1).astype(mf.int32), n),
        lambda x, y: np.zeros(8, bool),
    ),
    "a number a row": (lambda x, y: mf.sum(mf.full_like(x, 2.0) * y[:, None], axis=1), lambda x, y: 128 * y),
}


@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_rows_of_one_number(name: str, stage: str) -> None:
    fn, reference = CASES[name]
    module = module_at(stage, fn, specs_of([X, Y]))
    function = next(f for f in module.body.operations if "fuse.results" in f.operation.attributes)
    (result,) = interpreter.run(module, function.operation.attributes["sym_name"].value, [X, Y])
    np.testing.assert_allclose(result, reference(X, Y), rtol=1e-6, atol=1e-6)

"""Reductions over some of a tile's dimensions where a cluster is spread over others too, on the interpreter."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at
from tests.support.reductions.spread_clusters import CASES, Case, chosen


@pytest.mark.parametrize("case", CASES, ids=str)
def test_blocks_exchange_with_those_that_reduce_the_same(case: Case) -> None:
    """Two clusters have three rows and two, so that the exchanges of one row follow those of another."""
    inputs = case.inputs()
    module = module_at("gpu", case.fn, [case.spec()], case.schedule())
    results = interpreter.run(module, case.fn.__name__, inputs, sms=2 * prod(case.blocks), order="random", seed=3)
    case.check(results, inputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cluster_that_the_heuristics_spread_over_two_dimensions(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 33, 5, 200)).astype(dtype)
    largest, total = mf.fuse(chosen, target="interpret")(x)
    np.testing.assert_array_equal(largest, x.max((1, 2)))
    assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-5, atol=1e-3)

"""Joined, padded and shifted arrays, and what is computed of these, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some
from tests.support.views.joined_chains import JoinedChain

WIDE = [1, 2, 8, 16, 33, 64, 127, 128, 129, 256, 1025]
"""Extents around accesses of bytes, and tiles."""


@pytest.mark.parametrize("seed", some(range(600), 40))
def test_random_chains(seed: int) -> None:
    chain = JoinedChain(seed)
    found = mf.fuse(lambda *arrays: chain(mf, *arrays), target="interpret")(*chain.arrays)
    chain.check(found)


@pytest.mark.parametrize("seed", some(range(600, 1000), 20))
def test_random_chains_of_contiguous_arrays(seed: int) -> None:
    chain = JoinedChain(seed)

    def traced(*arrays: Any) -> Any:
        return chain(mf, *arrays)

    module = module_at("gpu", traced, specs_of(chain.arrays))
    chain.check(interpreter.run(module, "traced", [np.array(array, order="C") for array in chain.arrays]))


@pytest.mark.parametrize("seed", some(range(1000, 1100), 8))
def test_random_chains_of_narrow_elements(seed: int) -> None:
    chain = JoinedChain(seed, WIDE, 40_000, ["int8", "bool"])
    chain.check(mf.fuse(lambda *arrays: chain(mf, *arrays), target="interpret")(*chain.arrays))


def test_values_that_are_read_often() -> None:
    """Each value is read three times to compute the next one: 3 to the power of 16 paths lead to the first one."""

    def rolled(xp: Any, join: Any, x: Any) -> Any:
        y = x
        for _ in range(16):
            y = y * 0.5 + xp.tanh(y) * y
        return join([y[1:], y[:1]]) - y

    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    found = mf.fuse(lambda x: rolled(mf, mf.concat, x), target="interpret")(x)
    np.testing.assert_allclose(
        np.asarray(found), rolled(np, np.concatenate, x.astype(np.float64)), rtol=1e-4, atol=1e-5
    )

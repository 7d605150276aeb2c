"""Slices of computed values and of arguments, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import some
from tests.support.views.sliced import random_reduced, random_sliced


@pytest.mark.parametrize("seed", some(range(400), 60))
def test_same_as_numpy(seed: int) -> None:
    case = random_sliced(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value, np.float64), exact)


@pytest.mark.parametrize("seed", some(range(200), 30))
def test_reductions_over_parts(seed: int) -> None:
    case = random_reduced(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value, np.float64), exact)


def test_rows_whose_halves_are_used_are_one_kernel() -> None:
    """A root mean square over whole rows, and a rotation of their halves, in the space of a half."""

    def rotated(x: mf.Tensor, c: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
        y = x * mf.rsqrt(mf.mean(mf.square(x), axis=-1, keepdims=True) + 1e-6)
        a, b = y[:, :64], y[:, 64:]
        return a * c - b, b * c + a

    specs = mf.TensorSpec((1024, 128), mf.float32), mf.TensorSpec((64,), mf.float32)
    lowered = mf.fuse(rotated, target="sm_90a").lower(*specs)
    assert lowered.as_text("tile").count("scf.forall") == 1


def test_diagonals_are_left_alone() -> None:
    """An op that reads one is no projection of its loops."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((3,), (3, 2, 2)))
    found = mf.fuse(lambda a, b: mf.einsum("a,abb", a, b), target="interpret")(a, b)
    np.testing.assert_array_equal(np.asarray(found), np.einsum("a,abb", a, b))

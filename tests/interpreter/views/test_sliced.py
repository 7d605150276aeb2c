"""Slices of computed values and of arguments, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import some
from tests.support.views.sliced import random_sliced


@pytest.mark.parametrize("seed", some(range(400), 60))
def test_same_as_numpy(seed: int) -> None:
    case = random_sliced(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value, np.float64), exact)

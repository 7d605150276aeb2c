"""Products of few columns and few terms, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.narrow import random_narrow
from tests.support.pairwise import some


@pytest.mark.parametrize("seed", some(range(120), 24))
def test_same_as_numpy(seed: int) -> None:
    narrow, arrays, exact = random_narrow(seed)
    found = mf.fuse(narrow, target="interpret")(*arrays)
    np.testing.assert_array_equal(np.asarray(found, np.float64), exact)


def test_a_tall_one_is_a_reduction_over_rows() -> None:
    specs = mf.TensorSpec((1 << 20, 3), mf.float32), mf.TensorSpec((3, 4), mf.float32)
    compiled = mf.fuse(lambda x, w: x @ w, target="sm_90a").lower(*specs).compile(choose_again=False)
    (schedule,) = compiled.schedules.values()
    assert schedule.contraction is None

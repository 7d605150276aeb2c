"""Single elements of inner axes, which are components of one axis."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.inner_elements import CASES


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "reversed"])
@pytest.mark.parametrize("name", CASES)
def test_inner_elements(name: str, layout: str) -> None:
    fn, shape = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = {"contiguous": x, "transposed": np.asfortranarray(x), "reversed": x[::-1]}[layout]
    found = mf.fuse(lambda x: fn(mf, x), target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), fn(np, x.astype(np.float64)), rtol=1e-4, atol=1e-5)

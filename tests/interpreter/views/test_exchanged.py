"""Stores of whole warps, of what each thread has in a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.exchanged import FUNCTIONS, close


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("count", [512, 515, 33])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_runs_of_threads(name: str, count: int, dtype: Any) -> None:
    function, shape = FUNCTIONS[name]
    x = np.random.default_rng(count).standard_normal(shape(count)).astype(dtype)
    found = mf.fuse(lambda x: function(mf, x), target="interpret")(x)
    close(found, function(np, x.astype(np.float64)), dtype)


@pytest.mark.parametrize("count", [512, 515])
def test_warps_meet_at_a_barrier(count: int) -> None:
    function, shape = FUNCTIONS["9 parts"]
    lowered = mf.fuse(lambda x: function(mf, x), target="sm_90a").lower(mf.TensorSpec(shape(count), "float32"))
    text = lowered.compile(choose_again=False).as_text("ptx")
    assert "bar.warp.sync" in text
    assert ("st.global.b32" in text) == (count % 32 != 0)

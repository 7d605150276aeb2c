"""Normalised pixels that are shifted, or divided into windows: results of compiled kernels on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.views.exchanged import close
from tests.support.views.windows import FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    function, kernels = FUNCTIONS[name]
    x = np.random.default_rng(0).standard_normal((2, 8, 12, 40)).astype(np.float32)
    compiled = mf.fuse(lambda x: function(mf, x), target="sm_90a").lower(mf.TensorSpec(x.shape, x.dtype)).compile()
    found = interpreter.run(compiled.module_at("gpu"), "lambda", [x], order="random", seed=1)
    close(tuple(found), function(np, x.astype(np.float64)), np.float32)
    assert len(compiled.schedules) == kernels

"""Differences of computed neighbours, with the neighbours stored or computed twice: results on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.harnesses.compiling import module_at
from tests.support.views.schemes import FUNCTIONS


@pytest.mark.parametrize("always", ["false", "true"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, always: str) -> None:
    def call(p: Any, q: Any) -> Any:
        return FUNCTIONS[name](mf, p, q)

    rng = np.random.default_rng(0)
    arrays = [(np.abs(rng.standard_normal((9, 64))) + 0.5).astype(np.float32) for _ in range(2)]
    module = module_at("linalg", call, [mf.TensorSpec(a.shape, a.dtype) for a in arrays])
    text = pipeline.named("fuse-gpu-pipeline").replace("-together,", f"-together{{always={always}}},")
    assert "together{" in text
    with module.context:
        run_pipeline(module, text)
        found = interpreter.run(module, "call", arrays, order="random", seed=1)
    expected = FUNCTIONS[name](np, *(a.astype(np.float64) for a in arrays))
    for one, right in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-4)

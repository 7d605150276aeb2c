"""Padded, shifted and differenced arrays, in one kernel with what is computed of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.views.edges import EDGES, SHAPES, drawn, tolerance

KERNELS = {"blur": 2}
"""The padded image is stored, of which each element would be computed nine times, of nine views."""


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str, dtype: Any) -> None:
    def traced(x: Any) -> Any:
        return EDGES[name](mf, mf.concat, x)

    for shape in SHAPES:
        x = drawn(shape, dtype)
        module = module_at("gpu", traced, specs_of([x]))
        (found,) = interpreter.run(module, "traced", [x])
        wanted = EDGES[name](np, np.concatenate, x.astype(np.float64))
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=0, atol=tolerance(dtype, wanted))


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_computed_where_they_are_read(name: str) -> None:
    for shape in ((1024, 4096), (1030, 1028)):  # the second's rows begin anywhere in a line
        module = module_at("gpu", lambda x: EDGES[name](mf, mf.concat, x), [mf.TensorSpec(shape, "float32")])
        assert str(module).count("gpu.func") == KERNELS.get(name, 1)

"""Slices of an array joined so that indices wrap around: results of compiled kernels on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.views.exchanged import close
from tests.support.views.rotated import FUNCTIONS

SHAPES = {2: [(8, 64), (5, 7), (4, 16)], 3: [(131, 3, 67), (4, 5, 16)]}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    function, rank = FUNCTIONS[name]
    for shape in SHAPES[rank]:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        compiled = mf.fuse(lambda x: function(mf, x), target="sm_90a").lower(mf.TensorSpec(shape, x.dtype)).compile()
        found = interpreter.run(compiled.module_at("gpu"), "lambda", [x], order="random", seed=1)
        close(tuple(found), function(np, x.astype(np.float64)), np.float32)


def test_each_element_is_read_from_one_place() -> None:
    """Of a torus a thread loads two neighbours in three columns, and the element, and selects nothing."""
    function, _ = FUNCTIONS["laplace"]
    compiled = mf.fuse(lambda x: function(mf, x), target="sm_90a").lower(mf.TensorSpec((61, 67), "float32")).compile()
    text = str(compiled.module_at("gpu"))
    assert text.count("memref.load") == 7
    assert "arith.select" not in text

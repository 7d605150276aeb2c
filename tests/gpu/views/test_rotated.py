"""Slices of an array joined so that indices wrap around, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.exchanged import close
from tests.support.views.rotated import FUNCTIONS

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

SHAPES = {2: [(512, 1024), (517, 1023), (4, 16)], 3: [(131, 61, 67), (64, 32, 128)]}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    function, rank = FUNCTIONS[name]
    for shape in SHAPES[rank]:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        found = mf.fuse(lambda x: function(mf, x))(cupy.asarray(x))
        found = tuple(map(cupy.asnumpy, found)) if isinstance(found, tuple) else cupy.asnumpy(found)
        close(found, function(np, x.astype(np.float64)), np.float32)

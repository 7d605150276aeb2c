"""Normalised pixels that are shifted, or divided into windows, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.exchanged import close
from tests.support.views.windows import FUNCTIONS

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("shape", [(2, 8, 12, 40), (8, 56, 64, 192), (3, 28, 28, 100)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, shape: tuple[int, ...]) -> None:
    function, _ = FUNCTIONS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = mf.fuse(lambda x: function(mf, x))(cupy.asarray(x))
    found = tuple(map(cupy.asnumpy, found)) if isinstance(found, tuple) else cupy.asnumpy(found)
    close(found, function(np, x.astype(np.float64)), np.float32)

"""Stores of whole warps, of what each thread has in a run, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.exchanged import FUNCTIONS, close

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("count", [65536, 65539, 31, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_runs_of_threads(name: str, count: int, dtype: Any) -> None:
    function, shape = FUNCTIONS[name]
    extents = shape(count + 1)
    x = np.random.default_rng(count).standard_normal(extents).astype(dtype)
    found = mf.fuse(lambda x: function(mf, x))(cupy.asarray(x))
    found = tuple(map(cupy.asnumpy, found)) if isinstance(found, tuple) else cupy.asnumpy(found)
    close(found, function(np, x.astype(np.float64)), dtype)

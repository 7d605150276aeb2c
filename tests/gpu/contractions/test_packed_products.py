"""Products of packed weights of which slices are read, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.packed import random_packed

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_same_as_numpy(seed: int) -> None:
    case = random_packed(seed, 150)
    found = mf.fuse(case.function)(*map(cupy.asarray, case.arrays()))
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), case.expected())


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("rows", [16, 512, 1000])
def test_gates_of_a_layer(rows: int, count: int) -> None:
    """Integers, exactly: tiles of several products whose operands are columns of one array."""
    rng = np.random.default_rng(rows + count)
    x, w = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((rows, 512), (512, count * 768)))

    def gates(x: Any, w: Any, xp: Any = mf) -> Any:
        h = x @ w
        parts = [h[:, number * 768 : (number + 1) * 768] for number in range(count)]
        y = parts[0]
        for part in parts[1:]:
            y = xp.maximum(y, part) + part
        return y

    found = mf.fuse(gates)(cupy.asarray(x), cupy.asarray(w))
    wide = gates(x.astype(np.float64), w.astype(np.float64), np)
    assert np.abs(cupy.asnumpy(found) - wide).max() <= 2**-10 * np.abs(wide).max()

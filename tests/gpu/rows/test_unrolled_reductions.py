"""Reductions of a few elements that others need, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.nested import random_nested

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_same_as_numpy(seed: int) -> None:
    case = random_nested(seed)
    found = mf.fuse(case.function)(*map(cupy.asarray, case.arrays()))
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), case.expected())


def test_forces_between_bodies() -> None:
    """Against double precision, with one kernel and no pairs in memory."""
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((3000, 3)).astype(np.float32), rng.random(3000).astype(np.float32)

    def forces(x: Any, m: Any, xp: Any = mf) -> Any:
        r = x[None, :, :] - x[:, None, :]
        d = xp.sum(xp.square(r), axis=-1, keepdims=True) + 1e-2
        return xp.sum(r * (m[None, :, None] / (d * xp.sqrt(d))), axis=1)

    found = cupy.asnumpy(mf.fuse(forces)(cupy.asarray(x), cupy.asarray(m)))
    want = forces(x.astype(np.float64), m.astype(np.float64), np)
    assert np.abs(found - want).max() <= 1e-5 * np.abs(want).max()

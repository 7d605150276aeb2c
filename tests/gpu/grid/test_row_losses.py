"""Reductions of what rows are reduced to, in the kernel that reduces the rows, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.row_losses import LOSSES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("columns", [1024, 768, 4096, 33])
def test_losses(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compilation for every number of rows; semaphores are left zero, and the bits are the same again."""
    monkeypatch.setenv("MLIRFUSE_CHECK_WORKSPACE", "1")
    loss = LOSSES[name]
    fused = mf.fuse(loss.fn)
    for rows in (4096, 1, 37, 16384):
        arrays = loss.inputs(rows, columns)
        found = [[to_numpy(r) for r in fused(*map(to_torch, arrays))] for _ in range(2)]
        loss.check(found[0], arrays)
        assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))

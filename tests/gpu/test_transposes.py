"""Elementwise functions of transposed arrays, on the GPU."""

from __future__ import annotations

import pytest
from gpu.torch_arrays import to_numpy, to_torch
from transposes import CASES

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", CASES)
def test_transposed_arrays(name: str) -> None:
    case = CASES[name]
    arrays = case.arrays()
    fused, tensors = mf.fuse(case.fn), [to_torch(a) for a in arrays]
    out = torch.full_like(fused(*tensors), float("nan"))
    fused(*tensors, out=out)
    case.check(to_numpy(out), arrays)

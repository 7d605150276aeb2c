"""Long rows with several operands before the reduction: some fragments of each are spilled, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.numerics import DTYPES, EPSILON, assert_close

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def added_layer_norm(x: Any, b0: Any, b1: Any, w: Any, b: Any) -> Any:
    h = (x + b0 + b1).astype(mf.float32)
    centred = h - mf.mean(h, axis=-1, keepdims=True)
    variance = mf.mean(centred**2, axis=-1, keepdims=True)
    return (centred * mf.rsqrt(variance + EPSILON) * w + b).astype(x.dtype)


@pytest.mark.parametrize("columns", [28672, 65536, 106496, 131072])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_fused_adds(dtype: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    arrays = [rng.normal(1, 1, shape).astype(DTYPES[dtype]) for shape in ((5, columns), *[(columns,)] * 4)]
    tensors = [to_torch(a) for a in arrays]
    out = torch.full_like(tensors[0], float("nan"))
    mf.fuse(added_layer_norm)(*tensors, out=out)
    x, b0, b1, w, b = (a.astype(np.float64) for a in arrays)
    h = x + b0 + b1
    exact = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + EPSILON) * w + b
    x, b0, b1, w, b = tensors
    assert_close(to_numpy(out), exact, to_numpy(torch.nn.functional.layer_norm(x + b0 + b1, (columns,), w, b, EPSILON)))

"""Column tiles that blocks hold, and parts of warps that lanes share, on the GPU."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def softmax(x: Any) -> Any:
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-2, keepdims=True))
    return (e / mf.sum(e, axis=-2, keepdims=True)).astype(x.dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    "shape", [(3, 512, 200), (2, 1000, 1024), (1, 2049, 72), (1, 4096, 264), (1, 8190, 100)], ids=str
)
def test_column_tiles(shape: tuple[int, ...], dtype: str) -> None:
    torch.manual_seed(1)
    x = torch.randn(shape, device="cuda", dtype=getattr(torch, dtype))
    result, exact = mf.fuse(softmax)(x).double(), x.double().softmax(-2)
    assert (result - exact).norm() <= {"bfloat16": 3e-3, "float16": 4e-4, "float32": 1e-6}[dtype] * exact.norm()


@pytest.mark.parametrize("shape", [(5, 3136, 64), (3, 4099, 40), (7, 900, 16)], ids=str)
def test_lanes_share_the_partials_of_warps(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    total = mf.fuse(lambda x: mf.sum(x.astype(mf.float32), axis=1))(x)
    torch.testing.assert_close(total, x.double().sum(1).float(), rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(mf.fuse(lambda x: mf.max(x, axis=1))(x), x.amax(1), rtol=0, atol=0)

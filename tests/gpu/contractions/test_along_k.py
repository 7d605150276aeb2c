"""Products of bytes whose operands are not contiguous along k, on a GPU: copied first, or loaded byte by byte."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


@pytest.mark.parametrize("m", [1, 16, 300, 1024])
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_int8(m: int, transposed: bool) -> None:
    rng = np.random.default_rng(m)
    n, k = 1056, 1040
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    given = torch.from_numpy(x).cuda()
    if transposed:
        given = given.mT.contiguous().mT
    found = mf.fuse(lambda x, w: mf.matmul(x, w, dtype=mf.int32))(given, torch.from_numpy(w).cuda())
    wanted = x.astype(np.float64) @ w.astype(np.float64)  # exact
    np.testing.assert_array_equal(found.cpu().numpy(), wanted)


def test_quantised_rows() -> None:
    """The rows' number varies from call to call: only the weights are copied."""

    def linear(x, w, scale):
        s = mf.max(mf.abs(x), axis=1, keepdims=True) / 127.0
        q = mf.astype(mf.clip(mf.round(x / s), -127.0, 127.0), mf.int8)
        return mf.matmul(q, w, dtype=mf.int32).astype(mf.float32) * s * scale

    fused = mf.fuse(linear, dynamic_products=True)
    rng = np.random.default_rng(0)
    w = rng.integers(-127, 128, (1024, 1536)).astype(np.int8)
    scale = rng.random(1536).astype(np.float32)
    for rows in (512, 77):
        x = rng.standard_normal((rows, 1024)).astype(np.float32)
        s = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
        wanted = (np.clip(np.round(x / s), -127, 127).astype(np.float64) @ w) * s * scale
        found = fused(*(torch.from_numpy(a).cuda() for a in (x, w, scale))).cpu().numpy()
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        assert error < 2e-4, rows  # a quotient near .5 may round to the other side


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="no float8")
@pytest.mark.parametrize("m", [16, 512])
def test_float8(m: int) -> None:
    n, k = 512, 768
    torch.manual_seed(m)
    x, w = (torch.randn(shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((m, k), (k, n)))
    found = mf.fuse(lambda x, w: mf.matmul(x, w, dtype=mf.float32))(x, w)
    wanted = x.double() @ w.double()
    assert torch.linalg.vector_norm(found.double() - wanted) / torch.linalg.vector_norm(wanted) < 1e-3

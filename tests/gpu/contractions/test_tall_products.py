"""Products of a few rows of many columns, whose sums are spread over all blocks, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

COLUMNS = [1, 3, 5, 8, 16, 17, 32]


@pytest.mark.parametrize("rows", [1000, 100_003, 1_048_576])
@pytest.mark.parametrize("columns", COLUMNS)
def test_gram_matrices(columns: int, rows: int) -> None:
    torch.manual_seed(columns)
    x = torch.randn(rows, columns, device="cuda")
    fused = mf.fuse(lambda x: x.mT @ x)
    first, second = fused(x), fused(x)
    wanted = x.double().mT @ x.double()
    assert torch.linalg.matrix_norm(first.double() - wanted) / torch.linalg.matrix_norm(wanted) < 1e-5
    assert torch.equal(first, second)


@pytest.mark.parametrize(("m", "n"), [(16, 5), (8, 4), (3, 64), (2, 2)])
def test_two_arrays(m: int, n: int) -> None:
    torch.manual_seed(m)
    x, y = torch.randn(300_000, m, device="cuda"), torch.randn(300_000, n, device="cuda")
    found = mf.fuse(lambda x, y: x.mT @ y)(x, y)
    wanted = x.double().mT @ y.double()
    scale = torch.linalg.matrix_norm(x.double()) * torch.linalg.matrix_norm(y.double())
    assert torch.linalg.matrix_norm(found.double() - wanted) / scale < 1e-6


@pytest.mark.parametrize("columns", [3, 8])
def test_pairs_of_columns(columns: int) -> None:
    torch.manual_seed(columns)
    x, y = torch.randn(200_001, columns, device="cuda"), torch.randn(200_001, 4, device="cuda")
    found = mf.fuse(lambda x, y: mf.sum(mf.abs(x[:, :, None] - y[:, None, :]), axis=0))(x, y)
    wanted = (x.double()[:, :, None] - y.double()[:, None, :]).abs().sum(0)
    np.testing.assert_allclose(found.cpu().numpy(), wanted.cpu().numpy(), rtol=1e-5)


def test_weighted_sums_of_bools() -> None:
    """Loops over bytes, whose accumulators are wide."""
    torch.manual_seed(0)
    a, b = (torch.rand(4099, 1024, device="cuda") < 0.6 for _ in range(2))
    w = torch.rand(4099, 1, device="cuda")

    def sums(a, b, w):
        parts = (mf.sum(each.astype(mf.float32) * w, axis=0) for each in (a & b, a & ~b, ~a & b))
        return (*parts, mf.mean((a ^ b).astype(mf.float32)))

    found = mf.fuse(sums)(a, b, w)
    wanted = [(each.double() * w.double()).sum(0) for each in (a & b, a & ~b, ~a & b)] + [(a ^ b).double().mean()]
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own.cpu().numpy(), other.cpu().numpy(), rtol=2e-5)

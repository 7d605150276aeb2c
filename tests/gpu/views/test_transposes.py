"""Functions of transposed arrays, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.views.transposes import CASES, ROWS, in_order, turned

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", [*CASES, *ROWS])
def test_transposed_arrays(name: str) -> None:
    case = (CASES | ROWS)[name]
    arrays = case.arrays()
    fused, tensors = mf.fuse(case.fn), [to_torch(a) for a in arrays]
    out = fused(*tensors)
    out.view(torch.uint8).fill_(0x7F)  # not what any result is: of floats NaN, or a large number
    fused(*tensors, out=out)
    case.check(to_numpy(out), arrays)


@pytest.mark.parametrize("shape", [(136, 200), (137, 75)])
def test_views_of_transposed_arrays(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = torch.randint(-9, 10, shape, device="cuda").float()
    y = torch.randint(-9, 10, (columns, rows), device="cuda").float().T
    assert torch.equal(mf.fuse(lambda x, y: x - 2 * y)(x, y), x - 2 * y)


@pytest.mark.parametrize("order", [(), (0, 1), (1, 0)])
def test_blocks_in_any_order(order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((390, 2056)).astype(np.float32)
    fused = mf.fuse(turned, schedule=in_order(order))
    np.testing.assert_array_equal(cupy.asnumpy(fused(cupy.asarray(x))), x.T + 1)

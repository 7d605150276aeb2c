"""Reductions over static extents that no block holds, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.static_reductions import CASES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", CASES)
def test_what_no_block_holds_is_shared(name: str) -> None:
    """The same bits again, on a device whose blocks end in another order."""
    case = CASES[name]
    arrays = case.arrays(seed=1)
    fused, tensors = mf.fuse(case.fn), [to_torch(a) for a in arrays]
    first = to_numpy(fused(*tensors))
    case.check(first, arrays)
    for _ in range(20):
        np.testing.assert_array_equal(to_numpy(fused(*tensors)), first)


def test_a_long_sum_is_as_good_as_a_pairwise_one() -> None:
    """The sum of 2^26 numbers is as close to float64 as PyTorch's."""
    x = torch.rand(2**26, device="cuda")
    exact = x.sum(dtype=torch.float64)
    ours, theirs = (abs(y.double() - exact) for y in (mf.fuse(lambda x: mf.sum(x))(x), x.sum()))
    assert ours <= 2 * theirs + exact * 6e-8


@pytest.mark.parametrize("elements", [1, 4095, 4096 * 133, 65537 * 1023])
def test_maximum_of_any_number_of_elements(elements: int) -> None:
    """Whole tiles have a loop without masks; only the last one is masked."""
    x = torch.rand(elements, device="cuda").bfloat16()
    x[-1] = 2.0
    highest = mf.fuse(lambda x: mf.max(x))
    assert highest(x).item() == 2.0
    assert highest(x[:-1]).item() == x[:-1].max().item() if elements > 1 else True


def test_rows_of_an_odd_number_in_tiles_of_several() -> None:
    """Clamps and checks of the last tile's rows, in 32 bits behind the tile's position."""
    x = torch.rand(3, 2047, 49, device="cuda").bfloat16()
    w = torch.rand(2047, device="cuda")
    found = mf.fuse(lambda x, w: mf.astype(mf.astype(x, mf.float32) * w[:, None], mf.bfloat16))(x, w)
    assert torch.equal(found, (x.float() * w[:, None]).bfloat16())

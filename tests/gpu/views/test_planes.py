"""Images of few pixels as one dimension, whatever is predicted, on the GPU."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.passes.kernels import flatten_rows
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.views.planes import CASES, random_case, with_numbers

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", CASES)
def test_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatten_rows, "_loss", lambda *_: None)
    case = CASES[name]
    arrays = case.arrays()
    fused, tensors = mf.fuse(with_numbers(case)), [to_torch(a) for a in arrays]
    out = fused(*tensors)
    out.view(torch.uint8).fill_(0x7F)  # not what any result is
    fused(*tensors, out=out)
    case.check(to_numpy(out), arrays)


@pytest.mark.parametrize("seed", range(40))
def test_random_operands(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatten_rows, "_loss", lambda *_: None)
    case = random_case(seed)
    arrays = case.arrays()
    case.check(to_numpy(mf.fuse(with_numbers(case))(*map(to_torch, arrays))), arrays)

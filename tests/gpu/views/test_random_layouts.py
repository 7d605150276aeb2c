"""Random functions that change the order of memory, and windows, on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.views.random_layouts import KINDS, RandomLayout

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def of_arrays(case: RandomLayout) -> Callable[..., Any]:
    """The function with as many parameters as there are arrays."""
    if len(case.arrays()) == 1:
        return lambda x: case.function(x)
    return lambda x, y: case.function(x, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 108))
def test_random_orders_of_memory(seed: int, kind: str) -> None:
    """Results are written into memory that held something else, so that every element has to be."""
    case = RandomLayout(seed, kind, most=1 << 18)
    arrays = case.arrays()
    tensors, fused = [to_torch(a) for a in arrays], mf.fuse(of_arrays(case))
    made = fused(*tensors)
    outs = tuple(torch.empty_like(one) for one in (made if isinstance(made, tuple) else (made,)))  # some may be views
    for out in outs:
        out.view(torch.uint8).fill_(0x7F) if out.is_contiguous() else out.fill_(1)
    fused(*tensors, out=outs if isinstance(made, tuple) else outs[0])
    case.check(tuple(to_numpy(out) for out in outs), arrays)

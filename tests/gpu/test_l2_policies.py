"""Kernels that choose their eviction policies from the extents: the same numbers on either side of the choice."""

from __future__ import annotations

import pytest
from gpu.torch_arrays import to_numpy, to_torch
from numerics import DTYPES, FAMILIES

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

HALF_OF_L2 = 25 << 20


@pytest.mark.parametrize("columns", [768, 1600, 4096])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax"])
def test_few_and_many_bytes(name: str, columns: int) -> None:
    family = FAMILIES[name]
    fused = mf.fuse(family.fn)
    most = HALF_OF_L2 // (2 * columns)
    inputs = family.inputs(most + 1, columns, DTYPES["float16"])
    tensors = [to_torch(a) for a in inputs]
    many = fused(*tensors)
    family.check(to_numpy(many), inputs)
    few = fused(tensors[0][:most], *tensors[1:])
    assert torch.equal(few, many[:most])

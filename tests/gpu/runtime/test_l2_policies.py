"""Kernels that choose their eviction policies from the extents: the same numbers on either side of the choice."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES, FAMILIES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

HALF_OF_L2, TWO_FIFTHS = 25 << 20, 20 << 20


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


@pytest.mark.parametrize("columns", [1024, 4096, 16384])
@pytest.mark.parametrize("name", ["rms_norm_backward", "layer_norm_backward"])
def test_loops_of_few_and_many_bytes(name: str, columns: int) -> None:
    """Rows do not depend on each other; sums over them are checked on either side by `test_norm_backward.py`."""
    backward = BACKWARD[name]
    fused = mf.fuse(backward.fn)
    most = TWO_FIFTHS // (2 * 2 * columns)
    tensors = [to_torch(a) for a in backward.inputs(most + 1, columns, DTYPES["bfloat16"])]
    many, *_ = fused(*tensors)
    few, *_ = fused(*(t[:most] if len(t) == most + 1 else t for t in tensors))
    assert torch.equal(few, many[:most])

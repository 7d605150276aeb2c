"""Two GPUs: kernels, workspaces and streams are each device's own, and arrays of several devices are refused."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.numerics import DTYPES, FAMILIES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cupy.is_available() or cupy.cuda.runtime.getDeviceCount() < 2, reason="no two GPUs"),
]


def column_sums(x):
    return mf.sum(x.astype(mf.float32), axis=0)


def test_one_function_serves_both_devices() -> None:
    family = FAMILIES["layer_norm"]
    fused = mf.fuse(family.fn)
    for device in (0, 1, 0, 1):
        inputs = family.inputs(77, 1000, DTYPES["float16"], seed=device)
        result = fused(*(to_torch(a).to(device) for a in inputs))
        assert result.device.index == device
        family.check(to_numpy(result), inputs)


def test_each_device_has_its_own_workspace() -> None:
    """Blocks on both devices at a time, which add up through semaphores."""
    fused = mf.fuse(column_sums)
    xs = [torch.arange(4096 * 512, device=d, dtype=torch.float32).remainder_(7).view(4096, 512) for d in (0, 1)]
    for _ in range(20):
        results = [fused(x) for x in xs]
        for x, result in zip(xs, results, strict=True):
            torch.testing.assert_close(result, x.sum(0), rtol=0, atol=0)


def test_arrays_of_two_devices_are_refused() -> None:
    x, y = (torch.ones(4, 8, device=d) for d in (0, 1))
    with pytest.raises(mf.MlirFuseError, match="device"):
        mf.fuse(lambda x, y: x + y)(x, y)
    with pytest.raises(mf.MlirFuseError, match="device"):
        mf.fuse(lambda x: x + 1)(x, out=y)

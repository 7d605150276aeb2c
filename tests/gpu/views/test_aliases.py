"""Results that are views: their memory, their strides, and the kernels that calls launch, on real arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.device import driver

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def chain(x: Any) -> Any:
    return x.T.reshape(8, 8, 6)[:, 1:3].transpose(2, 0, 1)


def strides(shape: Any, steps: Any) -> list[int]:
    """Those that say where elements lie."""
    return [step for extent, step in zip(shape, steps, strict=True) if extent > 1]


VIEWS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "identity": (lambda x: x, lambda x: x),
    "transpose": (lambda x: x.T, lambda x: x.T),
    "reshape": (lambda x: x.reshape(3, 2, 64), lambda x: x.reshape(3, 2, 64)),
    "broadcast": (lambda x: mf.broadcast_to(x, (4, 6, 64)), lambda x: np.broadcast_to(x, (4, 6, 64))),
    "slice": (lambda x: x[1:5, 3:50:4], lambda x: x[1:5, 3:50:4]),
    "row": (lambda x: x[2], lambda x: x[2]),
    "column": (lambda x: x[:, -1], lambda x: x[:, -1]),
    "diagonal": (lambda x: mf.diagonal(x, 2), lambda x: np.diagonal(x, 2)),
    "expand": (lambda x: x[:, None, ::2], lambda x: x[:, None, ::2]),
    "squeeze": (lambda x: x[1:2].squeeze(0), lambda x: x[1]),
    "chain": (chain, chain),
}
BACKWARDS: dict[str, Callable[..., Any]] = {
    "rows": lambda x: x[::-1],
    "columns": lambda x: x[:, 50:3:-3],
    "flip": lambda x: (mf if isinstance(x, mf.Tensor) else np).flip(x, 1),
}


def array(rows: int = 6, columns: int = 64) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def launches(call: Callable[[], object]) -> int:
    """The number of nodes of a graph of a call."""
    call()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
        kept = call()
        graph, count = driver.capture(stream.ptr).graph, ctypes.c_size_t()
        driver.call("cuGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(count))
        stream.end_capture()
    del kept
    return count.value


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_cupy_arrays(name: str) -> None:
    function, reference = VIEWS[name]
    host, fused = array(), mf.fuse(function)
    x = cupy.asarray(host)
    for _ in range(4):
        result, expected = fused(x), reference(host)
        assert result.shape == expected.shape
        assert strides(result.shape, result.strides) == strides(expected.shape, expected.strides)
        offset = expected.__array_interface__["data"][0] - host.ctypes.data
        assert result.data.ptr == x.data.ptr + offset
        np.testing.assert_array_equal(result.get(), expected)
    assert launches(lambda: fused(x)) == 0


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_torch_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, reference = VIEWS[name]
    host, fused = array(), mf.fuse(function)
    x = torch.as_tensor(host, device="cuda")
    for tensor in (x, torch.as_tensor(np.pad(host, ((1, 0), (0, 0))), device="cuda")[1:]):  # which starts behind
        for _ in range(4):
            result, expected = fused(tensor), reference(host)
            assert tuple(result.shape) == expected.shape
            steps = [4 * stride for stride in result.stride()]
            assert strides(result.shape, steps) == strides(expected.shape, expected.strides)
            offset = expected.__array_interface__["data"][0] - host.ctypes.data
            assert result.data_ptr() == tensor.data_ptr() + offset
            np.testing.assert_array_equal(result.cpu().numpy(), expected)


@pytest.mark.parametrize("name", BACKWARDS)
def test_cupy_has_negative_strides_and_torch_gets_a_copy(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, host = BACKWARDS[name], array()
    expected, fused = function(host), mf.fuse(function)
    x = cupy.asarray(host)
    result = fused(x)
    assert result.strides == expected.strides
    assert launches(lambda: fused(x)) == 0
    np.testing.assert_array_equal(result.get(), expected)
    tensor = torch.as_tensor(host, device="cuda")
    copied = fused(tensor)
    assert copied.is_contiguous()
    np.testing.assert_array_equal(copied.cpu().numpy(), expected)


def test_an_array_of_another_framework_is_copied() -> None:
    class Foreign:
        def __init__(self, of: Any):
            self.of, self.__cuda_array_interface__ = of, of.__cuda_array_interface__

    x = cupy.asarray(array())
    result = mf.fuse(lambda x: x.T)(Foreign(x))
    assert isinstance(result, cupy.ndarray)
    assert not cupy.shares_memory(result, x)
    cupy.testing.assert_array_equal(result, x.T)


def test_jax_arrays_are_not_written_through_results() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(array())
    result = mf.fuse(lambda x: x[:, ::2])(x)
    result[...] = -1
    np.testing.assert_array_equal(np.asarray(x), array())


def test_out_gets_a_copy_by_a_kernel() -> None:
    fused, x = mf.fuse(lambda x: (x.T, x[1:3], x * 2)), cupy.asarray(array())
    out = tuple(cupy.full(shape, np.nan, np.float32) for shape in ((64, 6), (2, 64), (6, 64)))
    assert fused(x, out=out) is out
    for given, expected in zip(out, (x.T, x[1:3], x * 2), strict=True):
        cupy.testing.assert_array_equal(given, expected)
    turned = mf.fuse(lambda x: x.T)
    given = cupy.full((64, 6), np.nan, np.float32)
    assert launches(lambda: turned(x, out=given)) == 1
    with pytest.raises(ArgumentError, match="overlaps an argument"):
        turned(x, out=x.T)


def test_views_of_a_kernels_result_are_no_other_kernel() -> None:
    fused, x = mf.fuse(lambda x: ((x * 2).T, (x * 2)[1:3, ::-1])), cupy.asarray(array())
    turned, part = fused(x)
    assert cupy.shares_memory(turned, part)
    assert launches(lambda: fused(x)) == 1
    cupy.testing.assert_array_equal(turned, x.T * 2)
    cupy.testing.assert_array_equal(part, x[1:3, ::-1] * 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_kernels_read_views(dtype: Any) -> None:
    functions: list[Callable[..., Any]] = [
        lambda x: x[:, :512] * x[:, 512:],
        lambda x: x[1::2, 1::2] + x[::-2, -2::-2],
        lambda x: x[3:, 7:-5] * 2,
        lambda x: x.T.reshape(32, 32, 96)[:, 1:9] + 1,
        lambda x: (mf if isinstance(x, mf.Tensor) else np).sum(x[5:, 3:900], axis=-1),
        lambda x: (mf if isinstance(x, mf.Tensor) else np).sum(x[5:, 3:900:2], axis=0),
        lambda x: (mf if isinstance(x, mf.Tensor) else np).diagonal(x, 3) * 2,
        lambda x: x[:64, :64] @ x[16:80, 32:96],
        lambda x: x[:64, 64:128].T @ x[32:96, 1:65],
    ]
    host = np.random.default_rng(0).integers(-4, 5, (96, 1024)).astype(dtype)
    x = cupy.asarray(host)
    for function in functions:
        result = mf.fuse(function)(x)
        np.testing.assert_array_equal(result.get(), function(host.astype(np.float64)).astype(dtype))

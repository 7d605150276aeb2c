"""Fused functions in CUDA graphs of PyTorch and CuPy: captured once, replayed on new values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def softmax(x: Any) -> Any:
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, y: x * 2 + y,
    "rows": lambda x, y: softmax(x + y),
    "columns": lambda x, y: mf.sum(x * y, axis=0),
    "product": lambda x, y: x @ y.T,
    "views": lambda x, y: ((x + y).T, (x + y)[1:3]),
    "two kernels": lambda x, y: (mf.sum(x, axis=0), mf.sum(y, axis=1)),
    "only views": lambda x, y: (x.T, y[::2]),
}


def values(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(count).integers(-3, 4, (64, 256)).astype(np.float32) for _ in range(2)]


def flat(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def expected(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(r) for r in flat(mf.fuse(function, target="interpret")(*arrays))]


@pytest.mark.parametrize("into", [False, True], ids=["new results", "out="])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_graphs(name: str, into: bool) -> None:
    fused = mf.fuse(FUNCTIONS[name])
    x, y = (torch.as_tensor(v, device="cuda") for v in values(0))
    warm = flat(fused(x, y))
    out = tuple(torch.full_like(r, np.nan, memory_format=torch.contiguous_format) for r in warm) if into else None
    if out is not None:
        out = out if len(out) > 1 else out[0]  # type: ignore[assignment]
        fused(x, y, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = flat(fused(x, y) if out is None else fused(x, y, out=out))
    for count in (1, 2):
        for tensor, new in zip((x, y), values(count), strict=True):
            tensor.copy_(torch.as_tensor(new))
        graph.replay()
        torch.cuda.synchronize()
        for result, exact in zip(results, expected(FUNCTIONS[name], values(count)), strict=True):
            np.testing.assert_allclose(result.cpu().numpy(), exact, rtol=2e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cupy_graphs(name: str) -> None:
    fused = mf.fuse(FUNCTIONS[name])
    x, y = (cupy.asarray(v) for v in values(0))
    fused(x, y)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        results = flat(fused(x, y))
        graph = stream.end_capture()
    for count in (1, 2):
        for array, new in zip((x, y), values(count), strict=True):
            array.set(new, stream)
        stream.synchronize()
        if name != "only views":
            graph.launch(stream)
        stream.synchronize()
        for result, exact in zip(results, expected(FUNCTIONS[name], values(count)), strict=True):
            np.testing.assert_allclose(result.get(), exact, rtol=2e-6)

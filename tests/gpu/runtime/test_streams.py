"""Kernels run on the framework's current stream, on a given one, and in CUDA graphs."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import mlirfuse as mf
from tests.support.reductions.numerics import softmax

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

DELAY = 20_000_000
"""Clock cycles for which a stream is kept busy, so that work on another stream would overtake: about 10 ms."""


@pytest.fixture(scope="module")
def fused() -> mf.Fused:
    return mf.fuse(softmax)


def late_input(stream: Any) -> Any:
    """An input that is zero until the stream gets to writing it."""
    x = torch.zeros(512, 1024, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(DELAY)
        x.copy_(torch.arange(1024, device="cuda").float().expand(512, 1024) / 100)
    return x


def test_the_current_stream_of_torch(fused: mf.Fused) -> None:
    stream = torch.cuda.Stream()
    fused(torch.zeros(512, 1024, device="cuda"))  # compiles
    x = late_input(stream)
    with torch.cuda.stream(stream):
        y = fused(x)
    stream.synchronize()
    torch.testing.assert_close(y, torch.softmax(x, -1))


@pytest.mark.parametrize("kind", ["torch", "cupy", "int"])
def test_a_stream_that_is_given(kind: str, fused: mf.Fused) -> None:
    stream = torch.cuda.Stream()
    fused(torch.zeros(512, 1024, device="cuda"))
    # CuPy 14 has Stream.from_external, and deprecates ExternalStream; CuPy 13 has only the latter.
    from_external = getattr(cupy.cuda.Stream, "from_external", None)
    in_cupy = from_external(stream) if from_external else cupy.cuda.ExternalStream(stream.cuda_stream)
    given = {"torch": stream, "cupy": in_cupy, "int": stream.cuda_stream}[kind]
    x = late_input(stream)
    out = torch.empty_like(x)
    torch.cuda.current_stream().synchronize()
    fused(x, out=out, stream=given)
    stream.synchronize()
    torch.testing.assert_close(out, torch.softmax(x, -1))


def test_capture_and_replay(fused: mf.Fused) -> None:
    x = torch.randn(512, 1024, device="cuda")
    out = torch.empty_like(x)
    fused(x, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fused(x, out=out)
        doubled = fused(out)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        out.fill_(float("nan"))
        graph.replay()
        torch.testing.assert_close(out, torch.softmax(x, -1))
        torch.testing.assert_close(doubled, torch.softmax(out, -1))


def test_a_graph_is_replayed_when_its_function_is_gone() -> None:
    x = torch.randn(512, 999, device="cuda")
    out = torch.empty_like(x)
    fused = mf.fuse(lambda x: softmax(x) * 3)
    fused(x, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fused(x, out=out)
    del fused
    gc.collect()
    out.fill_(float("nan"))
    graph.replay()
    torch.testing.assert_close(out, torch.softmax(x, -1) * 3)

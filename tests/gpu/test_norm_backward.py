"""Backward functions on the GPU against float64, with PyTorch's own error as the yardstick, and under stress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from backward import BACKWARD, Backward
from gpu.torch_arrays import to_numpy, to_torch
from numerics import DTYPES, EPSILON, assert_close

import mlirfuse as mf
from mlirfuse.runtime import workspace

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

F = torch.nn.functional

COLUMNS = (257, 384, 1000, 1600, 5140)
ROWS = (1, 7, 100, 4095)
WIDE = (12288, 16384, 20480, 32768, 65536)
NORMS = ("rms_norm_backward", "layer_norm_backward")
SMALL = (300, 384)
"""Rows over several blocks, and a launch of a few microseconds."""


def autograd(name: str, tensors: Sequence[Any]) -> tuple[Any, ...] | None:
    """The gradients of PyTorch's own kernels, for what PyTorch has one."""
    if name not in NORMS:
        return None
    dy, x, w = tensors[0], tensors[1].detach().requires_grad_(), tensors[2].detach().requires_grad_()
    if name == "rms_norm_backward":
        return torch.autograd.grad(F.rms_norm(x, w.shape, w, EPSILON), (x, w), dy)
    b = torch.zeros_like(w, requires_grad=True)
    return torch.autograd.grad(F.layer_norm(x, w.shape, w, b, EPSILON), (x, w, b), dy)


def check(backward: Backward, results: Sequence[Any], tensors: Sequence[Any]) -> None:
    """Against float64; the yardstick is PyTorch, by its own kernels or by the reference in float32."""
    exact = backward.reference(*(t.double() for t in tensors))
    yardstick = autograd(backward.name, tensors)
    if yardstick is None:
        yardstick = backward.reference(*(t.float() for t in tensors))
    for result, wanted, theirs in zip(results, exact, yardstick, strict=True):
        assert_close(to_numpy(result), to_numpy(wanted), to_numpy(theirs.to(result.dtype)))


def bits(tensor: Any) -> Any:
    return tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int32)


def same(results: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(torch.equal(bits(a), bits(b)) for a, b in zip(results, expected, strict=True))


@pytest.fixture(scope="module")
def fused() -> dict[str, mf.Fused]:
    return {name: mf.fuse(backward.fn) for name, backward in BACKWARD.items()}


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BACKWARD)
def test_sizes(name: str, dtype: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    backward = BACKWARD[name]
    for rows in ROWS if dtype == "bfloat16" else ROWS[1:3]:
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES[dtype], seed=rows)]
        check(backward, fused[name](*tensors), tensors)


@pytest.mark.parametrize("columns", WIDE)
@pytest.mark.parametrize("name", NORMS)
def test_wide_rows(name: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    backward = BACKWARD[name]
    for rows in (1, 3, 200):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"], seed=rows)]
        check(backward, fused[name](*tensors), tensors)


@pytest.mark.parametrize("name", BACKWARD)
def test_one_signature_serves_all_row_counts(name: str) -> None:
    backward = BACKWARD[name]
    traced = []

    def counted(*arguments: Any) -> Any:
        traced.append(len(arguments))
        return backward.fn(*arguments)

    fused = mf.fuse(counted)
    for rows in (2, 7, 33, 4095):
        fused(*(to_torch(a) for a in backward.inputs(rows, 384, DTYPES["bfloat16"])))
    assert len(traced) == 1


@pytest.mark.parametrize("columns", [257, 1000, 5140])
@pytest.mark.parametrize("name", BACKWARD)
def test_every_element_of_poisoned_outputs_is_written(name: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    backward = BACKWARD[name]
    tensors = [to_torch(a) for a in backward.inputs(61, columns, DTYPES["bfloat16"])]
    guarded, outs = [], []
    for result in fused[name](*tensors):
        memory = torch.full((result.numel() + 64,), float("nan"), dtype=result.dtype, device="cuda")
        guarded.append(memory)
        outs.append(memory[32 : 32 + result.numel()].view(result.shape))
    fused[name](*tensors, out=tuple(outs))
    check(backward, outs, tensors)
    for memory in guarded:
        assert torch.isnan(memory[:32]).all(), "written in front of an output"
        assert torch.isnan(memory[-32:]).all(), "written behind an output"


def pairwise_sum(terms: Any) -> Any:
    """Sums float32 rows two by two, which is as accurate as a sum in float32 gets by its order alone."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = torch.cat([terms[:half] + terms[half : 2 * half], terms[2 * half :]])
    return terms[0]


@pytest.mark.parametrize("name", NORMS)
def test_sums_over_many_rows(name: str, fused: dict[str, mf.Fused]) -> None:
    """576000 rows, sums in float32: 14 to 90 times a pairwise sum's error is what a running sum would have."""
    centred = name == "layer_norm_backward"
    rows, columns = 576000, 384
    generator = torch.Generator("cuda").manual_seed(0)
    dy, x = (torch.randn(rows, columns, device="cuda", generator=generator).bfloat16() for _ in range(2))
    w = torch.rand(columns, device="cuda", generator=generator) + 0.5
    mean = (x.double() * centred).mean(-1, keepdim=True).float()
    rstd = ((x.double() - mean).square().mean(-1, keepdim=True) + EPSILON).rsqrt().float()
    results = fused[name](dy, x, w, *([mean, rstd] if centred else [rstd]))[1:]
    g = dy.double()
    terms = [g * ((x.double() - mean) * rstd), *([g] if centred else [])]
    for result, term in zip(results, terms, strict=True):
        exact = term.sum(0)
        error = (result.double() - exact).abs()
        assert (error <= np.ceil(np.log2(rows)) * np.finfo(np.float32).eps * term.abs().sum(0)).all()
        pairwise = (pairwise_sum(term.float()).double() - exact).abs()
        assert error.max() <= 8 * pairwise.max(), f"{error.max():.2e}, a pairwise sum {pairwise.max():.2e}"


@pytest.mark.parametrize("name", BACKWARD)
def test_results_are_reproducible(name: str, fused: dict[str, mf.Fused]) -> None:
    backward = BACKWARD[name]
    for rows, columns in ((4095, 1600), (67, 5140), (5, 65536)):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"])]
        first = fused[name](*tensors)
        torch.cuda.synchronize()
        for _ in range(100):
            assert same(fused[name](*tensors), first)
        for _ in range(4):
            with torch.cuda.stream(torch.cuda.Stream()):
                again = fused[name](*tensors)
            torch.cuda.synchronize()
            assert same(again, first)


@pytest.mark.parametrize("name", BACKWARD)
def test_no_rows(name: str, fused: dict[str, mf.Fused]) -> None:
    arguments = BACKWARD[name].inputs(1, 384, DTYPES["bfloat16"])
    for result in fused[name](*(to_torch(a[:0] if a.ndim == 2 else a) for a in arguments)):
        assert result.shape in ((0, 384), (384,))
        assert not result.count_nonzero(), "a sum over no rows is 0"


def test_semaphores_are_zero_after_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(workspace.CHECK, "1")
    for backward in BACKWARD.values():
        checked = mf.fuse(backward.fn)
        for rows, columns in ((1, 384), (4095, 384), (300, 20480)):
            tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"])]
            check(backward, checked(*tensors), tensors)


class Stress:
    """Calls with several inputs, whose results are compared bit for bit with what single calls gave.

    Args:
        fused: the function.
        backward: makes its inputs.
        sets: of inputs and outputs, used in turn.
    """

    def __init__(self, fused: mf.Fused, backward: Backward, sets: int):
        self.fused = fused
        arrays = [backward.inputs(*SMALL, DTYPES["bfloat16"], seed=seed) for seed in range(sets)]
        self.inputs = [[to_torch(a) for a in each] for each in arrays]
        self.expected = [fused(*each) for each in self.inputs]
        self.outputs = [tuple(map(torch.empty_like, results)) for results in self.expected]
        torch.cuda.synchronize()
        for results, tensors in zip(self.expected, self.inputs, strict=True):
            check(backward, results, tensors)
        self.poison()

    def call(self, position: int) -> None:
        i = position % len(self.inputs)
        self.fused(*self.inputs[i], out=self.outputs[i])

    def poison(self) -> None:
        for results in self.outputs:
            for result in results:
                result.fill_(float("nan"))
        torch.cuda.synchronize()

    def verify(self) -> None:
        """All outputs are right; they are poisoned afterwards."""
        torch.cuda.synchronize()
        wrong = [i for i, results in enumerate(self.outputs) if not same(results, self.expected[i])]
        assert not wrong, f"wrong results for inputs {wrong}"
        self.poison()


@pytest.fixture(params=["rms_norm_backward", "layer_norm_backward", "batch_norm_sums"])
def make_stress(request: pytest.FixtureRequest, fused: dict[str, mf.Fused]) -> Callable[[int], Stress]:
    return lambda sets: Stress(fused[request.param], BACKWARD[request.param], sets)


def test_a_hundred_thousand_launches(make_stress: Callable[[int], Stress]) -> None:
    stress = make_stress(8)
    for position in range(100_000):
        stress.call(position)
        if position % 10_000 == 9_999:
            stress.verify()


def test_eight_streams_at_once(make_stress: Callable[[int], Stress]) -> None:
    stress = make_stress(8)
    streams = [torch.cuda.Stream() for _ in range(8)]
    for position in range(8 * 1000):
        with torch.cuda.stream(streams[position % 8]):
            stress.call(position)
    stress.verify()


def test_eight_threads_with_a_stream_each(make_stress: Callable[[int], Stress]) -> None:
    stress = make_stress(8)

    def work(i: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(500):
                stress.call(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stress.verify()


def capture(stress: Stress, positions: Sequence[int]) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for position in positions:
            stress.call(position)
    return graph


def test_ten_thousand_replays(make_stress: Callable[[int], Stress]) -> None:
    stress = make_stress(4)
    graph = capture(stress, range(4))
    for count in range(10_000):
        graph.replay()
        if count % 1000 == 999:
            stress.verify()


def test_graphs_and_calls_interleaved(make_stress: Callable[[int], Stress]) -> None:
    """Two graphs and plain calls, on one stream and on several at once."""
    stress = make_stress(6)
    graphs = [capture(stress, (0, 1)), capture(stress, (2, 3))]
    streams = [torch.cuda.Stream() for _ in range(3)]
    for count in range(2000):
        together = count % 2 == 0
        for graph, stream in zip(graphs, streams, strict=False):
            with torch.cuda.stream(streams[0] if together else stream):
                graph.replay()
        with torch.cuda.stream(streams[0] if together else streams[2]):
            stress.call(4)
            stress.call(5)
        if count % 200 == 199:
            stress.verify()
        elif together:  # the outputs of a graph move to another stream next
            torch.cuda.synchronize()

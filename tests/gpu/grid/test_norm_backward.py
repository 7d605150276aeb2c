"""Backward functions on the GPU against float64, with PyTorch's own error as the yardstick, and under stress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.variants import MOST_VARIANTS
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import workspace
from tests.support.gpu import stress
from tests.support.gpu.canaries import guarded_outputs, guarded_workspace
from tests.support.gpu.stress import same
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.backward import BACKWARD, Backward
from tests.support.reductions.numerics import DTYPES, EPSILON, assert_close

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

F = torch.nn.functional

COLUMNS = (257, 384, 1000, 1600, 2048, 3072, 5140)
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


@pytest.mark.parametrize("columns", [4096, 8192])
@pytest.mark.parametrize("name", NORMS)
def test_rows_of_a_block_each(name: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    """From one block with a tile to persistent loops whose blocks load one tile ahead, and two."""
    backward = BACKWARD[name]
    for rows in (1, 3, 1024, 5000):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"], seed=rows)]
        check(backward, fused[name](*tensors), tensors)


@pytest.mark.parametrize("name", BACKWARD)
def test_row_counts_share_what_is_compiled(name: str) -> None:
    """Calls of another magnitude have variants of their own where these are predicted to be faster, up to a bound."""
    backward = BACKWARD[name]
    traced = []

    def counted(*arguments: Any) -> Any:
        traced.append(len(arguments))
        return backward.fn(*arguments)

    fused = mf.fuse(counted)

    def run(*counts: int) -> None:
        for rows in counts:
            tensors = [to_torch(a) for a in backward.inputs(rows, 384, DTYPES["bfloat16"], seed=rows)]
            check(backward, fused(*tensors), tensors)

    run(2, 7, 33, 4095)
    variants = len(traced)
    assert variants <= MOST_VARIANTS
    run(3, 6, 47, 2600)
    assert len(traced) == variants


workspace_check = pytest.fixture(guarded_workspace)


@pytest.mark.parametrize("columns", [257, 1000, 5140, 20480])
@pytest.mark.parametrize("name", BACKWARD)
def test_every_element_of_the_outputs_is_written_and_nothing_beside_them(
    name: str, columns: int, fused: dict[str, mf.Fused], workspace_check: Callable[[], None]
) -> None:
    backward = BACKWARD[name]
    for rows in (1, 61, 300):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"])]
        outputs = guarded_outputs(fused[name](*tensors))
        fused[name](*tensors, out=tuple(output.array for output in outputs))
        check(backward, [output.array for output in outputs], tensors)
        for output in outputs:
            output.check()
        workspace_check()


def pairwise_sum(terms: Any) -> Any:
    """Sums float32 rows two by two, which is as accurate as a sum in float32 gets by its order alone."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = torch.cat([terms[:half] + terms[half : 2 * half], terms[2 * half :]])
    return terms[0]


@pytest.mark.parametrize("name", NORMS)
def test_sums_over_many_rows(name: str, fused: dict[str, mf.Fused]) -> None:
    """576000 rows, in float32: a pairwise sum's error, or little more; a running sum has 14 to 90 times as much."""
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
        assert error.norm() <= 1.4 * pairwise.norm(), f"{error.norm():.2e}, a pairwise sum {pairwise.norm():.2e}"


@pytest.mark.parametrize("name", BACKWARD)
def test_results_are_reproducible(name: str, fused: dict[str, mf.Fused]) -> None:
    backward = BACKWARD[name]
    for rows, columns in ((4095, 1600), (67, 5140), (1000, 16384), (301, 32768), (5, 65536)):
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


@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block", "second_kernel"])
@pytest.mark.parametrize("name", [*NORMS, "batch_norm_sums"])
def test_who_combines(name: str, grid_reduction: Any) -> None:
    """Right, the same bits again and from a graph, and nothing left in semaphores."""
    backward = BACKWARD[name]
    asked = mf.fuse(backward.fn, grid_reduction=grid_reduction)
    for rows, columns in ((3, 384), (4095, 1600), (1000, 20480)):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"], seed=rows)]
        outputs = guarded_outputs(asked(*tensors))
        arrays = tuple(output.array for output in outputs)
        asked(*tensors, out=arrays)
        check(backward, arrays, tensors)
        first = [array.clone() for array in arrays]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            asked(*tensors, out=arrays)
        for _ in range(20):
            for array in arrays:
                array.fill_(float("nan"))
            graph.replay()
            assert same(arrays, first)
        for output in outputs:
            output.check()
    assert not stress.semaphores_at_rest()


@pytest.mark.parametrize("name", [*NORMS, "batch_norm_sums", "bias_gelu_backward"])
def test_atomic_additions(name: str) -> None:
    """Right, whenever parts come, also from a graph, and the sums are zero again after every launch."""
    backward = BACKWARD[name]
    asked = mf.fuse(backward.fn, grid_reduction="atomics")
    for rows, columns in ((2, 7), (3, 384), (4095, 1600), (300, 257), (1000, 20480)):
        tensors = [to_torch(a) for a in backward.inputs(rows, columns, DTYPES["bfloat16"], seed=rows)]
        outputs = guarded_outputs(asked(*tensors))
        arrays = tuple(output.array for output in outputs)
        asked(*tensors, out=arrays)
        check(backward, arrays, tensors)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            asked(*tensors, out=arrays)
        for _ in range(5):
            for array in arrays:
                array.fill_(float("nan"))
            graph.replay()
            check(backward, arrays, tensors)
            assert not stress.semaphores_at_rest()
        for output in outputs:
            output.check()


@pytest.fixture
def make_exact_stress() -> stress.MakeStress:
    """Sums of integers, which come out the same in whatever order they are added."""
    backward = BACKWARD["batch_norm_sums"]
    asked = mf.fuse(backward.fn, grid_reduction="atomics")

    def exact(results: Sequence[Any], tensors: Sequence[Any]) -> None:
        for result, wanted in zip(results, backward.reference(*(t.double() for t in tensors)), strict=True):
            assert torch.equal(result.double(), wanted)

    def make(sets: int) -> stress.Stress:
        inputs = []
        for seed in range(sets):
            generator = torch.Generator("cuda").manual_seed(seed)
            dy, x = (torch.randint(-9, 10, SMALL, device="cuda", generator=generator) for _ in range(2))
            mean = torch.randint(-2, 3, SMALL[1:], device="cuda", generator=generator)
            inputs.append([dy.bfloat16(), x.bfloat16(), mean.float(), torch.full_like(mean, 2.0, dtype=torch.float32)])
        return stress.Stress(asked, inputs, exact)

    return make


@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block", "second_kernel"])
def test_a_call_that_fails(grid_reduction: Any) -> None:
    """Its only kernel is refused, or the second of two; what is in the semaphores then is not trusted."""
    backward = BACKWARD["layer_norm_backward"]
    asked = mf.fuse(backward.fn, grid_reduction=grid_reduction)
    tensors = [to_torch(a) for a in backward.inputs(*SMALL, DTYPES["bfloat16"])]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        expected = asked(*tensors)
    stream.synchronize()
    check(backward, expected, tensors)
    kernels = next(iter(asked._loaded.values()))
    broken = stress.refused(asked, next((name for name in kernels if "grid_reduction" in name), next(iter(kernels))))
    for _ in range(3):
        with pytest.raises(RuntimeLaunchError, match="layer_norm_backward: the driver refuses the launch"):
            broken(tuple(tensors), stream=stream)
        semaphores = workspace.arena(0, stream.cuda_stream)._blocks["semaphores"]
        if semaphores.nbytes:  # a second kernel needs none
            cupy.cuda.runtime.memsetAsync(semaphores.pointer, 0x55, semaphores.nbytes, stream.cuda_stream)
        with torch.cuda.stream(stream):
            again = asked(*tensors)
        stream.synchronize()
        assert same(again, expected)
        assert not stress.semaphores_at_rest()


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


STRESSED = {
    "rms_norm_backward": ("auto", SMALL),
    "layer_norm_backward": ("auto", SMALL),
    "batch_norm_sums": ("auto", SMALL),
    "rms_norm_backward, last block": ("last_block", SMALL),
    "layer_norm_backward, second kernel": ("second_kernel", SMALL),
    "layer_norm_backward, clusters": ("auto", (60, 20480)),
}
"""How partials are combined, and rows and columns, by name."""


@pytest.fixture(params=STRESSED)
def make_stress(request: pytest.FixtureRequest) -> stress.MakeStress:
    grid_reduction, shape = STRESSED[request.param]
    backward = BACKWARD[request.param.split(",")[0]]
    asked = mf.fuse(backward.fn, grid_reduction=grid_reduction)

    def make(sets: int) -> stress.Stress:
        arrays = [backward.inputs(*shape, DTYPES["bfloat16"], seed=seed) for seed in range(sets)]
        inputs = [[to_torch(a) for a in each] for each in arrays]
        return stress.Stress(asked, inputs, partial(check, backward))

    return make


STRESSES = (stress.back_to_back, stress.on_streams, stress.on_threads, stress.replayed, stress.graphs_beside_calls)


@pytest.mark.parametrize("act", STRESSES)
def test_stress(act: Callable[[stress.MakeStress], None], make_stress: stress.MakeStress) -> None:
    act(make_stress)


@pytest.mark.parametrize("act", STRESSES)
def test_stress_of_atomic_additions(
    act: Callable[[stress.MakeStress], None], make_exact_stress: stress.MakeStress
) -> None:
    act(make_exact_stress)

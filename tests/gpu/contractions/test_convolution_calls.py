"""Convolutions as calls: memory around results and workspaces, splits, warm calls, large batches and arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.runtime import workspace
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.convolutions import Case, channels_first_block, dgrad, forward, integers, reference_block, wgrad
from tests.support.gpu.canaries import GuardedOutput, guarded_workspace

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

workspace_check = pytest.fixture(guarded_workspace)

CASES = {
    "aligned": Case(4, (14, 14), 64, 64, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "strided": Case(3, (15, 13), 32, 64, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "odd": Case(2, (9, 11), 3, 20, (5, 3), (2, 1), ((2, 1), (0, 1)), (1, 2)),
    "groups": Case(2, (12, 12), 32, 32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4),
    "merged groups": Case(8, (28, 28), 128, 128, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 32),
    "lines of groups": Case(8, (28, 28), 96, 96, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    "padded channels": Case(4, (14, 14), 48, 64, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "taps of classes": Case(2, (32, 32), 128, 128, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "strided images": Case(2, (32, 32), 3, 32, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "depthwise": Case(2, (12, 12), 32, 32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 32),
}


def passes(case: Case) -> dict[str, tuple[Callable[..., Any], tuple[int, int], Callable[..., np.ndarray]]]:
    """Each pass: the function, which of x, w and dy it takes, and its reference."""
    p = case.parameters
    return {
        "forward": (lambda x, w: mf.conv2d(x, w, **p), (0, 1), forward),
        "wgrad": (lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=case.taps, **p), (0, 2), wgrad),
        "dgrad": (lambda dy, w: mf.conv2d_dgrad(dy, w, input_size=case.sizes, **p), (2, 1), dgrad),
    }


def few_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """-1, 0 and 1, mostly 0, so that long sums are exact in half precision too."""
    return (rng.integers(-1, 2, shape) * (rng.random(shape) < 0.2)).astype(np.float16)


@pytest.mark.parametrize("name", ["forward", "wgrad", "dgrad"])
@pytest.mark.parametrize("case", CASES)
def test_nothing_around_results_and_workspaces_is_written(
    case: str, name: str, workspace_check: Callable[[], None]
) -> None:
    """And everything of a result, in each of three calls, with equal bits."""
    function, which, reference = passes(CASES[case])[name]
    rng = np.random.default_rng(3)
    arrays = [few_integers(rng, CASES[case].shapes[n]) for n in which]
    tensors, want = [torch.tensor(a, device="cuda") for a in arrays], reference(CASES[case], *arrays)
    fused, found = mf.fuse(function), []
    for _ in range(3):
        out = GuardedOutput(want.shape, torch.float16)
        fused(*tensors, out=out.array)
        workspace_check()
        out.check()
        found.append(out.array.cpu().numpy())
        np.testing.assert_array_equal(found[-1].astype(np.float64), want)
        np.testing.assert_array_equal(found[-1].view(np.uint16), found[0].view(np.uint16))


@pytest.mark.parametrize("shape", [(4, 64, 14, 14), (2, 64, 9, 11)])
def test_channels_first_between_convolutions(shape: tuple[int, ...]) -> None:
    """The result is a view with the channels last; an array that is given is written with the channels first."""
    rng = np.random.default_rng(5)
    x, w, s = (few_integers(rng, each) for each in (shape, (64, 64, 3, 3), (64, 1, 1)))
    want = reference_block(x, w, s)
    tensors, fused = [torch.tensor(a, device="cuda") for a in (x, w, s)], mf.fuse(channels_first_block)
    found = fused(*tensors)
    np.testing.assert_array_equal(found.cpu().numpy(), want)
    assert found.is_contiguous(memory_format=torch.channels_last)
    given = torch.full(shape, float("nan"), dtype=torch.float16, device="cuda")
    fused(*tensors, out=given)
    np.testing.assert_array_equal(given.cpu().numpy(), want)


SPLIT = Case(8, (28, 28), 64, 64, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))


SPLITS = [
    each
    for each in product((1, 4, 8, 16, 32, 64), ("mma", "wgmma"), ("last_block", "serial", "grid_sync"))
    if each[0] <= 8 or each[1:] != ("wgmma", "grid_sync")  # else more blocks than a device holds wait for each other
]


@pytest.mark.parametrize(("split", "instruction", "reduction"), SPLITS)
def test_every_split_of_a_weight_gradient_is_exact(split: int, instruction: str, reduction: str) -> None:
    rng = np.random.default_rng(split)
    x, _, dy = (integers(rng, shape, np.float16) for shape in SPLIT.shapes)
    given = Product(64, 576, 8 * 28 * 28, "tn", "float16")
    schedule = pinned_schedule(given, 64, 64, split, reduction if split > 1 else "last_block", instruction)
    fused = mf.fuse(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=3, padding=1, dtype=mf.float32), schedule=schedule)
    found = fused(cupy.asarray(x), cupy.asarray(dy))
    np.testing.assert_array_equal(cupy.asnumpy(found), wgrad(SPLIT, x.astype(np.int64), dy.astype(np.int64)))


@pytest.mark.parametrize("name", ["forward", "wgrad", "dgrad"])
@pytest.mark.parametrize("case", CASES)
def test_a_warm_call_allocates_nothing_and_sets_no_memory(
    case: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, which, _ = passes(CASES[case])[name]
    tensors = [torch.randn(CASES[case].shapes[n], device="cuda").half() for n in which]
    fused = mf.fuse(function)
    out = fused(*tensors)
    fused(*tensors, out=out)
    torch.cuda.synchronize()
    monkeypatch.setattr(workspace, "_allocate", None)  # calling it fails
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            fused(*tensors, out=out)
        torch.cuda.synchronize()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    names = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert names
    assert not [n for n in names if "memset" in n.lower() or "memcpy" in n.lower()]


@pytest.mark.parametrize(
    ("size", "channels", "filters", "taps"), [(56, 64, 64, 3), (28, 128, 512, 1), (14, 256, 256, 3), (7, 512, 512, 3)]
)
def test_errors_at_batch_256_are_not_above_cudnns(size: int, channels: int, filters: int, taps: int) -> None:
    """Of float16 weight gradients against float64, of some filters: partial sums of a long split are not rounded."""
    torch.manual_seed(size)
    x = torch.randn(256, channels, size, size, device="cuda").half().to(memory_format=torch.channels_last)
    dy = torch.randn(256, filters, size, size, device="cuda").half().to(memory_format=torch.channels_last)
    pad, few = taps // 2, slice(0, 8)

    def of_filters(x: Any, dy: Any) -> Any:
        shape = (dy.shape[1], channels, taps, taps)
        return torch.nn.grad.conv2d_weight(x, shape, dy, padding=pad)

    exact = of_filters(x.double(), dy[:, few].double())
    theirs = of_filters(x, dy)[few].double()
    fused = mf.fuse(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=taps, padding=pad))
    own = fused(x.permute(0, 2, 3, 1), dy.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)[few].double()
    assert (own - exact).norm() <= 1.1 * (theirs - exact).norm()
    assert (own - exact).abs().max() <= 1.5 * (theirs - exact).abs().max()


def test_arrays_of_more_elements_than_int32_counts() -> None:
    """x and the result have 2**31 + 2**26 elements each; all images are alike, and the last one is looked at."""
    images, size, channels = 33, 1024, 64
    case = Case(1, (size, size), channels, channels, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
    torch.manual_seed(0)
    image = torch.randint(-1, 2, (1, size, size, channels), device="cuda").half()
    w = (torch.randint(-1, 2, case.shapes[1], device="cuda") * (torch.rand(case.shapes[1], device="cuda") < 0.1)).half()
    x = image.expand(images, -1, -1, -1).contiguous()
    assert x.numel() > 1 << 31
    one = mf.fuse(lambda x, w: mf.conv2d(x, w, padding=1))(image, w)
    all_ = mf.fuse(lambda x, w: mf.conv2d(x, w, padding=1))(x, w)
    for n in (0, images - 2, images - 1):
        assert (all_[n] == one[0]).all()
    want = torch.nn.functional.conv2d(image.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1)
    assert (one.permute(0, 3, 1, 2) == want).all()
    gradient = mf.fuse(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=3, padding=1, dtype=mf.float32))
    seldom = torch.zeros_like(all_)
    seldom[-1, -1, -1] = 1
    found = gradient(x, seldom)
    assert (found[:, 0, 0] == x[-1, -2, -2].float()).all()
    assert (found[:, 2].sum() == 0).item()

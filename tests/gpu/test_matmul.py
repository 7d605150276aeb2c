"""Matrix products on the GPU: integers exactly, random data within twice cuBLAS's error."""

from __future__ import annotations

import numpy as np
import pytest
from compositions import COMPOSITIONS, Composition
from epilogues import CASES, Case
from gpu.torch_arrays import to_numpy, to_torch
from products import FUNCTIONS, PRODUCTS, REDUCTIONS, SPLITS, WGMMA, Product, pinned_schedule

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

LARGE = [
    *(
        Product(*extents, form)
        for extents in ((512, 384, 1024), (1000, 1000, 1000), (333, 129, 4097))
        for form in FUNCTIONS
    ),
    Product(300, 200, 500, "nt", "float32"),
    Product(300, 200, 500, "nn", "float64"),
    Product(130, 140, 96, "nt", "float16", ((5, 1), (7,))),
]


@pytest.fixture(scope="module")
def fused() -> dict[str, mf.Fused]:
    return {form: mf.fuse(fn) for form, fn in FUNCTIONS.items()}


@pytest.mark.parametrize("product", [*PRODUCTS, *LARGE], ids=str)
def test_integers_are_exact(product: Product, fused: dict[str, mf.Fused]) -> None:
    inputs = product.inputs(seed=product.m)
    result = to_numpy(fused[product.form](*map(to_torch, inputs)))
    np.testing.assert_array_equal(result, product.expected(inputs))


RESIDENT = 132  # multiprocessors of an H200
LARGE_SPLITS = [(Product(256, 384, 4096), 128, 128, split, "wgmma") for split in (1, 2, 13, 64)]
LARGE_SPLITS += [(Product(100, 200, 4096), 64, 64, split, "mma") for split in (2, 13, 64)]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("product", "m", "n", "split", "instruction"),
    [*((*case, None) for case in SPLITS), *((*case, "wgmma") for case in WGMMA), *LARGE_SPLITS],
    ids=str,
)
def test_splits(product: Product, m: int, n: int, split: int, instruction: str | None, reduction: str) -> None:
    if reduction == "slices" and -(-product.m // m) * -(-product.n // n) * split > RESIDENT:
        pytest.skip("more blocks than the device holds at once")
    inputs = product.inputs(seed=split)
    fn = mf.fuse(product.fn, schedule=pinned_schedule(product, m, n, split, reduction, instruction))
    tensors = [to_torch(a) for a in inputs]
    expected = product.expected(inputs)
    for _ in range(3):
        np.testing.assert_array_equal(to_numpy(fn(*tensors)), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("extents", [(256, 256, 512), (100, 130, 16384)])
def test_random_data_within_twice_cublas_error(extents, dtype, fused: dict[str, mf.Fused]) -> None:
    m, n, k = extents
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    x, w = (torch.randn(rows, k, device="cuda").to(getattr(torch, dtype)) for rows in (m, n))
    exact = x.double() @ w.double().T
    own, peer = (((y.double() - exact).abs().max() / exact.abs().max()).item() for y in (fused["nt"](x, w), x @ w.T))
    assert own <= 2 * peer + 1e-7


@pytest.mark.parametrize("case", CASES, ids=str)
def test_epilogues(case: Case) -> None:
    inputs = case.inputs()
    results = mf.fuse(case.fn)(*map(to_torch, inputs))
    case.check([to_numpy(r) for r in (results if isinstance(results, tuple) else (results,))], inputs)


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=str)
def test_compositions(composition: Composition) -> None:
    inputs = composition.inputs()
    results = mf.fuse(composition.fn)(*map(to_torch, inputs))
    composition.check([to_numpy(r) for r in (results if isinstance(results, tuple) else (results,))], inputs)


@pytest.mark.parametrize("extents", [(128, 128, 65536), (512, 384, 4096), (16, 1024, 8192)])
def test_the_same_bits_on_every_run(extents, fused: dict[str, mf.Fused]) -> None:
    m, n, k = extents
    x, w = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    first = fused["nt"](x, w)
    assert all(torch.equal(fused["nt"](x, w), first) for _ in range(50))


def test_torch_views_are_read_where_they_lie(fused: dict[str, mf.Fused]) -> None:
    x = torch.randint(-3, 4, (64, 96), device="cuda").to(torch.bfloat16)
    w = torch.randint(-3, 4, (96, 80), device="cuda").to(torch.bfloat16)
    for left, right in ((x, w), (x, w.T.contiguous().T), (x.T.contiguous().T, w), (x[:, ::2], w[::2])):
        assert torch.equal(fused["nn"](left, right), left @ right)


def test_one_kernel_a_call_and_nothing_else(fused: dict[str, mf.Fused]) -> None:
    """A split needs semaphores, and no memset: they were zeroed once."""
    x, w = (torch.randn(128, 65536, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(128, 128, device="cuda", dtype=torch.bfloat16)
    fused["nt"](x, w, out=out)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            fused["nt"](x, w, out=out)
        torch.cuda.synchronize()
    events = [e.name for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    assert len(events) == 3, events
    assert all("kernel" in name for name in events), events

"""Matrix products on the GPU: integers exactly, random data within twice cuBLAS's error."""

from __future__ import annotations

import numpy as np
import pytest
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

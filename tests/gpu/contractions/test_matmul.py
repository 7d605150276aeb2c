"""Matrix products on the GPU: integers exactly, random data within twice cuBLAS's error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.schedule.contractions.families.mma import WIDE_MMA_TILES
from tests.support.contractions.compositions import COMPOSITIONS, Composition
from tests.support.contractions.epilogues import CASES, Case
from tests.support.contractions.products import (
    FUNCTIONS,
    MOST_IN_CLUSTER,
    PRODUCTS,
    REDUCTIONS,
    SPLITS,
    TAILS,
    WGMMA,
    Product,
    pinned_schedule,
    tail_schedule,
)
from tests.support.gpu.canaries import GuardedOutput, guarded_workspace
from tests.support.gpu.torch_arrays import to_numpy, to_torch

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


workspace_check = pytest.fixture(guarded_workspace)


def check_exact(product: Product, fn: mf.Fused, seed: int, calls: int = 1) -> None:
    """Calls with an output that has a pattern around it and in it."""
    inputs = product.inputs(seed=seed)
    tensors, expected = [to_torch(a) for a in inputs], product.expected(inputs)
    for _ in range(calls):
        out = GuardedOutput(expected.shape, tensors[0].dtype)
        fn(*tensors, out=out.array)
        np.testing.assert_array_equal(to_numpy(out.array), expected)
        out.check()


@pytest.mark.parametrize("product", [*PRODUCTS, *LARGE], ids=str)
def test_integers_are_exact(product: Product, fused: dict[str, mf.Fused]) -> None:
    check_exact(product, fused[product.form], seed=product.m)


@pytest.mark.parametrize("tile", WIDE_MMA_TILES, ids=str)
@pytest.mark.parametrize("form", FUNCTIONS)
def test_wide_warps_are_exact(form: str, tile: tuple[int, int]) -> None:
    for dtype, k in (("float16", 64), ("bfloat16", 1088)):
        product = Product(512, 768, k, form, dtype)
        schedule = pinned_schedule(product, *tile, instruction="mma", wide=True)
        check_exact(product, mf.fuse(product.fn, schedule=schedule), seed=k, calls=3)


RESIDENT = 132  # SMs of an H200
LARGE_SPLITS = [(Product(256, 384, 4096), 128, 128, split, "wgmma") for split in (1, 2, 8, 13, 64)]
LARGE_SPLITS += [(Product(100, 200, 4096), 64, 64, split, "mma") for split in (2, 8, 13, 64)]
LARGE_SPLITS += [(Product(64, 64, 4096, dtype="float32"), 64, 64, split, "fma") for split in (13, 64, 128)]


LARGE_TAILS = [(Product(1536, 1536, 2048), 128, 128, 12, split, "wgmma", True) for split in (2, 7, 11)]
"""Tiles of two waves, the second of which is small."""


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("product", "m", "n", "split", "instruction"),
    [*((*case, None) for case in SPLITS), *((*case, "wgmma") for case in WGMMA), *LARGE_SPLITS],
    ids=str,
)
def test_splits(
    product: Product,
    m: int,
    n: int,
    split: int,
    instruction: str | None,
    reduction: str,
    workspace_check: Callable[[], None],
) -> None:
    if reduction in ("grid_sync", "flagged") and -(-product.m // m) * -(-product.n // n) * split > RESIDENT:
        pytest.skip("more blocks than the device holds at once")
    if reduction == "cluster" and split > MOST_IN_CLUSTER:
        pytest.skip("more blocks than a cluster has")
    fn = mf.fuse(product.fn, schedule=pinned_schedule(product, m, n, split, reduction, instruction))
    check_exact(product, fn, seed=split, calls=3)
    workspace_check()


@pytest.mark.parametrize("case", [*TAILS, *LARGE_TAILS], ids=str)
def test_last_tiles_that_are_shared(case: tuple[Any, ...], workspace_check: Callable[[], None]) -> None:
    product, _, _, _, split, *_ = case
    check_exact(product, mf.fuse(product.fn, schedule=tail_schedule(*case)), seed=split, calls=3)
    workspace_check()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_splits_whose_blocks_go_through_squares_of_tiles(reduction: str) -> None:
    """Five rows of tiles: a group of four, and one of one."""
    product = Product(264, 392, 1024)
    schedule = pinned_schedule(product, 64, 64, 3, reduction, "wgmma")
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, raster=4))
    check_exact(product, mf.fuse(product.fn, schedule=schedule), seed=3, calls=3)


@pytest.mark.parametrize("form", FUNCTIONS)
@pytest.mark.parametrize(("instruction", "dtype"), [("wgmma", "bfloat16"), ("mma", "float16"), ("fma", "float32")])
def test_every_split_to_64(instruction: str, dtype: str, form: str, workspace_check: Callable[[], None]) -> None:
    """Two tiles, so that the blocks of all reductions are resident; ragged slices of 65 or 129 steps along k."""
    product = Product(104, 40, 4104, form, dtype)
    number = list(FUNCTIONS).index(form)
    # Each form with each split on Hopper's own instruction; on the others the forms share the splits.
    for split in range(1, 65) if instruction == "wgmma" else range(1 + number, 65, 4):
        possible = [r for r in REDUCTIONS if r != "cluster" or split <= MOST_IN_CLUSTER]
        reduction = possible[(split + number) % len(possible)]
        schedule = pinned_schedule(product, 64, 64, split, reduction, instruction)
        check_exact(product, mf.fuse(product.fn, schedule=schedule), seed=split)
    workspace_check()


def relative_error(result: Any, exact: Any) -> float:
    return float((result.double() - exact).abs().max() / exact.abs().max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "extents", [(256, 256, 512), (100, 130, 16384), (64, 128, 131072), (128, 128, 262144), (17, 40, 262143)], ids=str
)
def test_random_data_within_twice_cublas_error(extents, dtype, fused: dict[str, mf.Fused]) -> None:
    m, n, k = extents
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    x, w = (torch.randn(rows, k, device="cuda").to(getattr(torch, dtype)) for rows in (m, n))
    exact = x.double() @ w.double().T
    assert relative_error(fused["nt"](x, w), exact) <= 2 * relative_error(x @ w.T, exact) + 1e-7


def single(x, w):
    return mf.matmul(x, w.mT, dtype=mf.float32)


TRUNCATION = 1.5e-9
"""Relative error for each element of a sum that one accumulator takes: tensor cores cut off what does not fit it."""


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("instruction", ["wgmma", "mma"])
def test_long_sums_in_single_precision(instruction: str, reduction: str) -> None:
    """262144 elements without a cast behind them: as accurate as cuBLAS or as the split allows, and reproducible."""
    product, split = Product(128, 72, 262144, "nt"), MOST_IN_CLUSTER if reduction == "cluster" else 32
    fn = mf.fuse(single, schedule=pinned_schedule(product, 64, 64, split, reduction, instruction))
    generator = torch.Generator("cuda").manual_seed(0)
    x, w = (torch.randn(rows, product.k, device="cuda", generator=generator).bfloat16() for rows in (128, 72))
    exact = x.double() @ w.double().T
    theirs = relative_error(torch.mm(x, w.T, out_dtype=torch.float32), exact)
    result = fn(x, w)
    assert relative_error(result, exact) <= max(2 * theirs, TRUNCATION * product.k / split)
    assert all(torch.equal(fn(x, w), result) for _ in range(20))


LONG = [(1024, 1024, 8192), (128, 128, 65536), (520, 512, 65536), (1000, 336, 50304), (256, 256, 131072)]
LONG += [(128, 128, 262144), (128, 72, 262144), (16, 4096, 14336)]

PROMOTED = [(p, s, r) for p in (1, 2, 7) for s, r in ((1, "last_block"), (3, "last_block"), (4, "flagged"))]
"""Steps after which sums are promoted, splits and their reductions."""


@pytest.mark.parametrize("contiguous", ["k", "rows"])
@pytest.mark.parametrize("extents", LONG, ids=str)
def test_single_precision_within_twice_cublas_error(extents: tuple[int, int, int], contiguous: str) -> None:
    """As the heuristics choose, which promote long sums. Operands lie along k, or along rows and columns."""
    m, n, k = extents
    generator = torch.Generator("cuda").manual_seed(0)
    x, w = (torch.randn(rows, k, device="cuda", generator=generator).bfloat16() for rows in (m, n))
    exact = x.double() @ w.double().T
    theirs = relative_error(torch.mm(x, w.T, out_dtype=torch.float32), exact)
    left, right = (a if contiguous == "k" else a.T.contiguous().T for a in (x, w))
    assert relative_error(mf.fuse(single)(left, right), exact) <= 2 * theirs + 1e-7


@pytest.mark.parametrize(("promote", "split", "reduction"), PROMOTED, ids=str)
def test_promoted_sums_of_integers_are_exact(promote: int, split: int, reduction: str) -> None:
    product = Product(200, 200, 1096, "nt", "float16")
    schedule = pinned_schedule(product, 128, 128, split, reduction, "wgmma")
    assert schedule.contraction is not None
    contraction = replace(schedule.contraction, promote=promote, persistent=split == 1)
    fn = mf.fuse(product.fn, schedule=replace(schedule, contraction=contraction))
    check_exact(product, fn, seed=promote, calls=3)


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

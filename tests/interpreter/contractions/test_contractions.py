"""Contractions at the tile and gpu levels, interpreted with all checks: integers come out exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler.context import make_context
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.contractions.families.fma import FMA_NARROW_TILES
from mlirfuse.support.diagnostics import parse_module
from tests.support.contractions.products import (
    FORMS,
    MOST_IN_CLUSTER,
    PRODUCTS,
    REDUCTIONS,
    SLICED,
    SPLITS,
    TAILS,
    WGMMA,
    Product,
    pinned_schedule,
    tail_schedule,
)
from tests.support.harnesses.compiling import module_at
from tests.support.kernels import order_for
from tests.support.pairwise import Row, combined

Order = dict[str, Any]

ZERO = "arith.constant 0.000000e+00"

ORDERS: tuple[Order, ...] = ({}, {"order": "reversed", "resident": 1}, {"order": "random", "seed": 3, "resident": 2})


def orders(reduction: str, split: int) -> tuple[Order, ...]:
    """Orders of blocks: one after the other from either end, and interleaved; few resident where that is enough."""
    if split == 1 or reduction not in SLICED:
        return ORDERS
    # A cluster needs its own blocks resident, other slices all.
    few: Order = {"resident": split} if reduction == "cluster" else {}
    return ({}, {"order": "reversed", **few}, {"order": "random", "seed": 5})


def _meets(row: Row) -> bool:
    """A cluster is no larger than the hardware's, and without a split there are no partials."""
    (split,) = {tiles[-1] for name, tiles in row.items() if name.startswith("product")} or {2}
    reduction = row.get("reduction", REDUCTIONS[0])
    return reduction == REDUCTIONS[0] if split == 1 else reduction != "cluster" or split <= MOST_IN_CLUSTER


@combined({"product": PRODUCTS}, turns={"number, stage": list(enumerate(("tile", "gpu")))})
def test_products(product: Product, number: int, stage: str) -> None:
    inputs = product.inputs(seed=product.m)
    module = module_at(stage, product.fn, product.specs)
    order = order_for(module, ORDERS[(product.n + number) % 3])
    (result,) = interpreter.run(module, product.form, inputs, **order)
    np.testing.assert_array_equal(result, product.expected(inputs))


@combined(
    {"product, m, n, split": SPLITS, "reduction": REDUCTIONS, "stage": ("tile", "gpu"), "order": range(3)}, _meets
)
def test_splits(product: Product, m: int, n: int, split: int, reduction: str, stage: str, order: int) -> None:
    inputs = product.inputs(seed=split)
    module = module_at(stage, product.fn, product.specs, pinned_schedule(product, m, n, split, reduction))
    (result,) = interpreter.run(module, product.form, inputs, **orders(reduction, split)[order])
    np.testing.assert_array_equal(result, product.expected(inputs))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("tile", FMA_NARROW_TILES, ids=str)
def test_narrow_scalar_tiles(tile: tuple[int, int], dtype: str) -> None:
    number = FMA_NARROW_TILES.index(tile)
    form = FORMS[number % 4]
    product = Product(21 + number, 35 + 2 * number, 96 + number % 2, form, dtype)
    inputs = product.inputs(seed=number)
    schedule = pinned_schedule(product, *tile, split=1 + number % 3, instruction="fma")
    module = module_at("gpu", product.fn, product.specs, schedule)
    (result,) = interpreter.run(module, product.form, inputs, order="random", seed=number)
    np.testing.assert_array_equal(result, product.expected(inputs))


@pytest.mark.parametrize("reduction", ["last_block", "serial", "grid_sync"])
def test_blocks_that_share_a_loop_add_what_it_starts_from_once(reduction: str) -> None:
    product, m, n, split = SPLITS[0]
    inputs = product.inputs(seed=1)
    fused = mf.fuse(product.fn, target="sm_90a", schedule=pinned_schedule(product, m, n, split, reduction))
    lowered = fused.lower(*product.specs)
    text = str(lowered.module)
    assert text.count(ZERO) == 1
    module = parse_module(text.replace(ZERO, "arith.constant 3.000000e+00"), make_context())
    with module.context:
        run_pipeline(module, lowered.pipeline("fuse-gpu-pipeline"))
    (result,) = interpreter.run(module, product.form, inputs)
    np.testing.assert_array_equal(result, product.expected(inputs) + 3)


@combined(
    {
        "form": FORMS,
        "dtype, m, n": [("float32", 128, 128), ("float32", 128, 64), ("float64", 64, 64), ("int32", 32, 32)],
        "sizes": [(130, 70, 100, ()), (20, 72, 96, ((2, 1), (1, 3)))],
        "stage": ("tile", "gpu"),
    }
)
def test_tiles_of_scalar_products(form: str, dtype: str, m: int, n: int, sizes: Any, stage: str) -> None:
    """Tiles that overrun both operands and k, transposed or not, in a batch and alone, between steps that copy."""
    *extents, batch = sizes
    product = Product(*extents, form, dtype, *([batch] if batch else []))
    inputs = product.inputs(seed=m)
    module = module_at(stage, product.fn, product.specs, pinned_schedule(product, m, n))
    (result,) = interpreter.run(module, product.form, inputs, order="random", seed=n)
    np.testing.assert_array_equal(result, product.expected(inputs))


@pytest.mark.parametrize("form", ["nt", "tn"])
def test_wide_warps(form: str) -> None:
    """Warps with 64 x 64 accumulators, in steps of whole 128 bytes of a row, fewer of them than stages."""
    product = Product(128, 256, 128, form, "float16")
    inputs = product.inputs()
    schedule = pinned_schedule(product, 128, 256, instruction="mma", wide=True)
    module = module_at("gpu", product.fn, product.specs, schedule)
    (result,) = interpreter.run(module, product.form, inputs, order="random", seed=1)
    np.testing.assert_array_equal(result, product.expected(inputs))


@combined({"product, m, n, split": WGMMA, "reduction": REDUCTIONS, "stage": ("tile", "gpu"), "order": range(3)}, _meets)
def test_wgmma(product: Product, m: int, n: int, split: int, reduction: str, stage: str, order: int) -> None:
    inputs = product.inputs(seed=split)
    module = module_at(stage, product.fn, product.specs, pinned_schedule(product, m, n, split, reduction, "wgmma"))
    assert "fuse.warpgroup_mma" in str(module)
    (result,) = interpreter.run(module, product.form, inputs, **orders(reduction, split)[order])
    np.testing.assert_array_equal(result, product.expected(inputs))


@combined({"case": TAILS, "stage": ("tile", "gpu"), "order": range(3)})
def test_last_tiles_that_are_shared(case: tuple[Any, ...], stage: str, order: int) -> None:
    """The others have a block each, or take turns in a persistent grid."""
    product, _, _, _, split, *_ = case
    inputs = product.inputs(seed=split)
    module = module_at(stage, product.fn, product.specs, tail_schedule(*case))
    (result,) = interpreter.run(module, product.form, inputs, sms=5, **orders("last_block", split)[order])
    np.testing.assert_array_equal(result, product.expected(inputs))


@combined({"form": ["nt", "tn"], "split": [1, 3], "instruction": ["mma", "wgmma"], "stage": ["tile", "gpu"]})
def test_swapped(form: str, split: int, instruction: str, stage: str) -> None:
    """The result's tile is transposed: its columns are the rows of x, few as they are."""
    product = Product(16, 200, 192, form, "bfloat16")
    schedule = pinned_schedule(product, 64, 64 if form == "tn" else 16, split, "grid_sync", instruction, swapped=True)
    inputs = product.inputs(seed=split)
    module = module_at(stage, product.fn, product.specs, schedule)
    (result,) = interpreter.run(module, product.form, inputs, order="random", seed=3)
    np.testing.assert_array_equal(result, product.expected(inputs))


@pytest.mark.parametrize("align", [8, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_views(dtype: str, align: int) -> None:
    """Operands whose contiguous axis is not the last, or that have none, are copied as their strides allow."""
    product = Product(40, 24, 48, "nn", dtype)
    x, w = product.inputs()
    for left, right, strides in (
        (np.asfortranarray(x), np.asfortranarray(w), ((1, None), (1, None))),
        (x[:, ::2], w[::2], ((None, None), (None, 1))),
    ):
        specs = [
            mf.TensorSpec(a.shape, dtype, strides=s, align=align) for a, s in zip((left, right), strides, strict=True)
        ]
        (result,) = interpreter.run(module_at("gpu", product.fn, specs), "nn", [left, right])
        np.testing.assert_array_equal(result, product.expected([left, right]), err_msg=str(strides))
        mf.fuse(product.fn, target="sm_90a").lower(*specs).compile()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("extents", [(3, 4, 3), (40, 9, 70), (64, 16, 64)], ids=str)
def test_a_product_and_sums_with_it(extents: tuple[int, int, int], dtype: type) -> None:
    """Upstream's canonicalisation multiplies once more for each, where k is a single step."""
    m, k, n = extents
    rng = np.random.default_rng(k)
    x, w = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    fused = mf.fuse(lambda x, w: (mf.sum((x @ w + 1) ** 2, axis=1), x @ w, x @ w - 2), target="interpret")
    for result, expected in zip(fused(x, w), (((x @ w + 1) ** 2).sum(1), x @ w, x @ w - 2), strict=True):
        np.testing.assert_array_equal(result, expected)

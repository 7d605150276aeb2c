"""Contractions at the tile and gpu levels, interpreted with all checks: integers come out exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import module_at
from products import PRODUCTS, REDUCTIONS, SLICED, SPLITS, WGMMA, Product, pinned_schedule

from mlirfuse import interpreter

ORDERS: tuple[dict[str, Any], ...] = ({}, {"order": "reversed"}, {"order": "random", "seed": 3, "resident": 2})


WHOLE_ORDERS = ({}, {"order": "random", "seed": 5})


def orders(reduction: str) -> tuple[dict[str, Any], ...]:
    """Orders of blocks; slices and mailboxes need all of them resident, clusters all of a cluster."""
    return WHOLE_ORDERS if reduction in SLICED else ORDERS


def skip_impossible(split: int, reduction: str) -> None:
    """A cluster is no larger than the hardware's."""
    if reduction == "cluster" and split > 8:
        pytest.skip("a cluster has 8 blocks at most")


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_products(product: Product) -> None:
    inputs = product.inputs(seed=product.m)
    expected = product.expected(inputs)
    for number, stage in enumerate(("tile", "gpu")):
        module = module_at(stage, product.fn, product.specs)
        (result,) = interpreter.run(module, product.form, inputs, **ORDERS[(product.n + number) % 3])
        np.testing.assert_array_equal(result, expected, err_msg=stage)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("product", "m", "n", "split"), SPLITS, ids=str)
def test_splits(product: Product, m: int, n: int, split: int, reduction: str) -> None:
    skip_impossible(split, reduction)
    inputs = product.inputs(seed=split)
    expected = product.expected(inputs)
    for stage in ("tile", "gpu"):
        module = module_at(stage, product.fn, product.specs, pinned_schedule(product, m, n, split, reduction))
        for order in orders(reduction):
            (result,) = interpreter.run(module, product.form, inputs, **order)
            np.testing.assert_array_equal(result, expected, err_msg=f"{stage} {order}")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("product", "m", "n", "split"), WGMMA, ids=str)
def test_wgmma(product: Product, m: int, n: int, split: int, reduction: str) -> None:
    if split == 1 and reduction != REDUCTIONS[0]:
        pytest.skip("without a split nothing meets")
    inputs = product.inputs(seed=split)
    module = module_at("gpu", product.fn, product.specs, pinned_schedule(product, m, n, split, reduction, "wgmma"))
    assert "fuse.warpgroup_mma" in str(module)
    for order in orders(reduction):
        (result,) = interpreter.run(module, product.form, inputs, **order)
        np.testing.assert_array_equal(result, product.expected(inputs), err_msg=str(order))


@pytest.mark.parametrize("instruction", ["mma", "wgmma"])
@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("form", ["nt", "tn"])
def test_swapped(form: str, split: int, instruction: str) -> None:
    """The result's tile is transposed: its columns are the rows of x, few as they are."""
    product = Product(16, 200, 192, form, "bfloat16")
    schedule = pinned_schedule(product, 64, 64 if form == "tn" else 16, split, "slices", instruction, swapped=True)
    inputs = product.inputs(seed=split)
    for stage in ("tile", "gpu"):
        module = module_at(stage, product.fn, product.specs, schedule)
        (result,) = interpreter.run(module, product.form, inputs, order="random", seed=3)
        np.testing.assert_array_equal(result, product.expected(inputs), err_msg=stage)

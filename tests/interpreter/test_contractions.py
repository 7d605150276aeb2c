"""Contractions at the tile and gpu levels, interpreted with all checks: integers come out exactly."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import module_at
from products import PRODUCTS, REDUCTIONS, SPLITS, Product, split_schedule

from mlirfuse import interpreter

ORDERS = ({}, {"order": "reversed"}, {"order": "random", "seed": 3, "resident": 2})


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
    inputs = product.inputs(seed=split)
    expected = product.expected(inputs)
    for stage in ("tile", "gpu"):
        module = module_at(stage, product.fn, product.specs, split_schedule(product, m, n, split, reduction))
        for order in ORDERS:
            (result,) = interpreter.run(module, product.form, inputs, **order)
            np.testing.assert_array_equal(result, expected, err_msg=f"{stage} {order}")

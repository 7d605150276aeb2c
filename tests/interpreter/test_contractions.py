"""Contractions at the tile and gpu levels, interpreted with all checks: integers come out exactly."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import module_at
from products import PRODUCTS, Product

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

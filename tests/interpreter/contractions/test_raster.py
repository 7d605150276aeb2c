"""The order in which blocks go through tiles: a permutation, with results that do not depend on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlirfuse import interpreter
from tests.support.contractions.products import REDUCTIONS, Product, pinned_schedule
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.harnesses.compiling import module_at


@pytest.mark.parametrize("raster", [2, 3, 4, 16])
@pytest.mark.parametrize("persistent", [False, True])
def test_every_tile_is_worked_on_once(raster: int, persistent: bool) -> None:
    product = Product(328, 320, 72, "nt")
    schedule = warpgroup_schedule(64, 64, persistent=persistent)
    assert schedule.contraction is not None
    contraction = replace(schedule.contraction, raster=raster)
    module = module_at("gpu", product.fn, product.specs, replace(schedule, contraction=contraction))
    (result,) = interpreter.run(module, product.form, product.inputs())
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


def test_batches_keep_apart() -> None:
    product = Product(200, 136, 72, "nn", "bfloat16", ((3,), (3,)))
    schedule = warpgroup_schedule(64, 64, batch=1)
    assert schedule.contraction is not None
    contraction = replace(schedule.contraction, raster=3)
    module = module_at("tile", product.fn, product.specs, replace(schedule, contraction=contraction))
    (result,) = interpreter.run(module, product.form, product.inputs())
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_tiles_of_a_split(reduction: str) -> None:
    """Slices of k under a raster: five rows of tiles, in a group of four and one of one."""
    product = Product(136, 200, 128)
    schedule = pinned_schedule(product, 32, 32, 2, reduction, "mma")
    assert schedule.contraction is not None
    contraction = replace(schedule.contraction, raster=4)
    module = module_at("gpu", product.fn, product.specs, replace(schedule, contraction=contraction))
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", seed=1)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))

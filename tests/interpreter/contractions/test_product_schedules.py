"""Random schedules of products: exact, and without races at the tile and gpu levels, in hostile orders.

MLIRFUSE_FUZZ_GRAPHS sets how many (`make fuzz`); the number in a test's name is the product's seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import PassError, ScheduleError
from tests.support.contractions.product_schedules import ScheduledProduct, scheduled_product
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import FULL

PRODUCTS = int(os.environ.get("MLIRFUSE_FUZZ_GRAPHS", "200" if FULL else "100")) // 4


def at(stage: str, case: ScheduledProduct) -> ir.Module:
    specs = [mf.TensorSpec(a.shape, a.dtype.name) for a in case.inputs]
    return module_at(stage, case.fn, specs, case.schedule)


def legal_product(seed: int) -> tuple[ScheduledProduct, ir.Module]:
    """The first product from a seed on whose schedule suits it, and its tile program."""
    for attempt in range(seed * 100, seed * 100 + 100):
        case = scheduled_product(attempt)
        try:
            return case, at("tile", case)
        except (PassError, ScheduleError):
            continue
    raise AssertionError(f"no schedule of a hundred from {seed * 100} on suits its product")


@pytest.mark.parametrize("seed", range(PRODUCTS))
def test_fuzz(seed: int) -> None:
    case, tile_program = legal_product(seed)
    for module in (tile_program, at("gpu", case)):
        results = interpreter.run(module, "fn", case.inputs, order="random", seed=seed, resident=case.resident)
        for result, expected in zip(results, case.expected, strict=True):
            np.testing.assert_array_equal(np.asarray(result).astype(np.float64), expected, err_msg=str(case))

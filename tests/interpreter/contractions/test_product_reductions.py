"""Reductions of a product's result in the product's kernel, in every kind of schedule and hostile orders of blocks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.contractions.product_reductions import CASES, OPERANDS, Case, K, M, N, over_batch, rows_of_squares
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined

SCHEDULES = {
    "mma": (64, 32, 1, "last_block", "mma", False),
    "mma, last block": (32, 32, 3, "last_block", "mma", False),
    "wgmma": (64, 32, 1, "last_block", "wgmma", False),
    "wgmma, swapped": (64, 16, 1, "last_block", "wgmma", True),
    "wgmma, serial reduction": (64, 64, 2, "serial", "wgmma", False),
    "wgmma, one tile of columns": (64, 128, 1, "last_block", "wgmma", False),
}
HALF = [case for case in CASES if case.shapes[:2] == OPERANDS and case.dtype == "float16"]


@combined({"case": CASES}, turns={"stage": ["tile", "gpu"]})
def test_kernels(case: Case, stage: str) -> None:
    inputs = case.inputs()
    module = module_at(stage, case.fn, specs_of(inputs))
    assert str(module).count("call @") == (2 if case.fn is over_batch else 1)
    for seed in range(2):
        case.check(interpreter.run(module, case.fn.__name__, inputs, order="random", seed=seed), inputs)


@combined({"case": HALF}, turns={"name": SCHEDULES})
def test_pinned_schedules(case: Case, name: str) -> None:
    m, n, split, reduction, instruction, swapped = SCHEDULES[name]
    schedule = pinned_schedule(Product(M, N, K, "nt", "float16"), m, n, split, reduction, instruction, swapped)
    inputs = case.inputs()
    module = module_at("gpu", case.fn, specs_of(inputs), schedule)
    case.check(interpreter.run(module, case.fn.__name__, inputs, order="random", seed=3), inputs)


@pytest.mark.parametrize("resident", [1, 3])
def test_blocks_that_loop_tiles(resident: int) -> None:
    case = CASES[0]
    schedule = pinned_schedule(Product(M, N, K, "nt", "float16"), 64, 16, instruction="wgmma")
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, persistent=True, raster=2))
    inputs = case.inputs()
    module = module_at("gpu", case.fn, specs_of(inputs), schedule)
    results = interpreter.run(module, case.fn.__name__, inputs, order="random", seed=4, resident=resident)
    case.check(results, inputs)


@pytest.mark.parametrize("case", [case for case in CASES if len(case.shapes[0]) == 3], ids=str)
def test_a_number_of_products_that_run_time_knows(case: Case) -> None:
    inputs = case.inputs()
    specs = [mf.TensorSpec(("b", *a.shape[1:]), a.dtype.name) for a in inputs]
    module = module_at("gpu", case.fn, specs)
    # Without a product there is no block that could write a sum over all of them.
    launched = [name for name in re.findall(r"fuse.launch = @(\w+)", str(module)) if "second_stage" not in name]
    assert len(launched) == (2 if case.fn is over_batch else 1)
    case.check(interpreter.run(module, case.fn.__name__, inputs, order="random", seed=5), inputs)
    assert not any(result.any() for result in interpreter.run(module, case.fn.__name__, [a[:0] for a in inputs]))


def test_reductions_are_the_same_bits_in_every_order_of_blocks() -> None:
    case = CASES[0]
    inputs = case.inputs()
    schedule = pinned_schedule(Product(M, N, K, "nt", "float16"), 32, 32, instruction="mma")
    module = module_at("gpu", case.fn, specs_of(inputs), schedule)
    runs = [interpreter.run(module, "rows_of_squares", inputs, order="random", seed=seed)[1] for seed in range(4)]
    assert all((run.view(np.int32) == runs[0].view(np.int32)).all() for run in runs)


def test_tiles_that_need_a_reduced_result_take_a_second_kernel() -> None:
    def normalised(x, w):
        y = mf.matmul(x, w.T, dtype=mf.float32)
        return y / mf.sum(y, axis=1, keepdims=True)

    compiled = mf.fuse(normalised, target="sm_90a").lower(*specs_of(CASES[0].inputs())).compile()
    assert len(compiled.binaries) == 2
    assert "every tile would need the result of a reduction over all tiles" in compiled.explain(verbose=True)


def test_slices_of_rows_have_no_reductions() -> None:
    schedule = pinned_schedule(Product(M, N, K, "nt", "float16"), 32, 32, 4, "grid_sync", "mma")
    with pytest.raises(mf.MlirFuseError, match="reductions in the epilogue need whole tiles"):
        module_at("gpu", rows_of_squares, specs_of(CASES[0].inputs()), schedule)

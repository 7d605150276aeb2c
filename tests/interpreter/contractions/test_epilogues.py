"""What follows a contraction works on its tile: biases, activations, residuals, in every kind of schedule."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.schedule.parts.contraction import SLICED
from tests.support.contractions.compositions import COMPOSITIONS, Composition
from tests.support.contractions.epilogues import CASES, Case, K, M, N
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined

SCHEDULES = {
    "mma": (64, 32, 1, "last_block", "mma", False),
    "mma, last block": (32, 32, 3, "last_block", "mma", False),
    "mma, grid_sync, swapped": (32, 32, 4, "grid_sync", "mma", True),
    "wgmma": (64, 32, 1, "last_block", "wgmma", False),
    "wgmma, serial reduction": (64, 32, 2, "serial", "wgmma", False),
    "wgmma, grid_sync": (64, 64, 3, "grid_sync", "wgmma", False),
    "wgmma, flagged": (64, 64, 3, "flagged", "wgmma", False),
    "wgmma, grid_sync, swapped": (64, 16, 4, "grid_sync", "wgmma", True),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_chosen_schedules(case: Case) -> None:
    inputs = case.inputs()
    specs = specs_of(inputs)
    module = module_at("gpu", case.fn, specs)
    assert str(module).count("gpu.func") == case.kernels
    case.check(interpreter.run(module, case.fn.__name__, inputs), inputs)


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=str)
def test_compositions(composition: Composition) -> None:
    inputs = composition.inputs()
    module = module_at("gpu", composition.fn, specs_of(inputs))
    composition.check(interpreter.run(module, composition.fn.__name__, inputs, order="random", seed=2), inputs)


@combined({"name": SCHEDULES}, turns={"case": [case for case in CASES if case.kernels == 1]})
def test_pinned_schedules(name: str, case: Case) -> None:
    m, n, split, reduction, instruction, swapped = SCHEDULES[name]
    if case.totals and reduction in SLICED:
        pytest.skip("reductions need whole tiles")
    product = Product(M, N, K, "nt", "float16")
    schedule = pinned_schedule(product, m, n, split, reduction, instruction, swapped)
    inputs = case.inputs()
    module = module_at("gpu", case.fn, specs_of(inputs), schedule)
    case.check(interpreter.run(module, case.fn.__name__, inputs, order="random", seed=1), inputs)


def test_results_are_the_same_bits_in_every_order_of_blocks() -> None:
    case = CASES[0]
    inputs = case.inputs()
    specs = specs_of(inputs)
    product = Product(M, N, K, "nt", "float16")
    for reduction in ("last_block", "serial", "grid_sync"):
        module = module_at("gpu", case.fn, specs, pinned_schedule(product, 32, 32, 5, reduction, "mma"))
        first, *others = (
            interpreter.run(module, "gelu", inputs, order="random", seed=seed)[0].view(np.int16) for seed in range(4)
        )
        assert all((other == first).all() for other in others)

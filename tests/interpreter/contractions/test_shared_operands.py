"""Products that share an operand in one kernel: exact and without races, with schedules of every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.analysis.kernels import kernels
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.several import apart, joined
from mlirfuse.schedule.schedule import Schedule
from tests.support.contractions.shared_operands import (
    CASES,
    Shared,
    kernels_of,
    problem_in,
    scheduled_at,
    schedules_of,
)
from tests.support.pairwise import combined

FORMS: dict[str, dict[str, Any]] = {
    "persistent": {"persistent": True, "raster": 8},
    "promoted": {"promote": 2},
    "promoted at every step": {"promote": 1, "persistent": True},
}
"""What the schedule of a warpgroup differs in from the plain one."""


def run_exactly(case: Shared, module: ir.Module) -> None:
    """Runs a module with its blocks in random order, and compares all results with the exact ones."""
    results = interpreter.run(module, case.fn.__name__, case.inputs(), order="random", resident=2)
    for result, expected in zip(results, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(result).astype(np.float64), expected)


@combined(
    {
        "name, target": [
            *((name, "sm_90a") for name in CASES),
            *((name, "sm_80") for name in ("gated", "two_inputs", "batched")),
        ]
    },
    turns={"place": ["first", "middle", "last"]},
)
def test_candidates(name: str, target: str, place: str) -> None:
    """The first, the last and one between of the candidates; all of them were run once."""
    case = CASES[name]
    found = schedules_of(case, target)
    schedule = found[{"first": 0, "middle": len(found) // 2, "last": -1}[place]]
    module = scheduled_at("gpu", case, schedule, target)
    assert ("fuse.warpgroup_mma" in str(module)) == (schedule.contraction.instruction == "wgmma")
    run_exactly(case, module)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["gated", "projections", "two_inputs"])
def test_forms(name: str, form: str) -> None:
    case = CASES[name]
    schedule = _warpgroup_schedule(case, 64, 128 if len(case.shapes) == 3 else 192)
    given = replace(schedule, contraction=replace(schedule.contraction, **FORMS[form]))
    run_exactly(case, scheduled_at("tile", case, given))
    run_exactly(case, scheduled_at("gpu", case, given))


@pytest.mark.parametrize("name", ["gated", "gated_plain"])
def test_consumer_groups(name: str) -> None:
    case = CASES[name]
    run_exactly(case, scheduled_at("gpu", case, _warpgroup_schedule(case, 128, 128, consumer_groups=2)))


def test_three_products_of_mma() -> None:
    """No tile of `mma.sync` has columns for three products: two of them share a kernel."""
    assert len(list(kernels(kernels_of(CASES["projections"], "sm_80").operation))) == 2


def _warpgroup_schedule(case: Shared, m: int, n: int, consumer_groups: int = 1) -> Schedule:
    """A schedule whose tiles of all products together are m x n, transposed where the products share operand B."""
    problem = problem_in(kernels_of(case))
    swapped = problem.arrays[0] > 1
    whole = wgmma_schedule(joined(problem), m, n, stages=3, swapped=swapped, consumer_groups=consumer_groups)
    schedule = apart(whole, problem)
    assert schedule is not None
    return schedule

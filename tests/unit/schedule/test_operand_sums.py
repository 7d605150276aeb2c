"""Which schedules sum up an operand beside its product, and what that is predicted to take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.contractions.families.fma import fma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.operand_sums import check_sums, sum_columns
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import predict_contraction
from mlirfuse.support.dtypes import float8_e4m3fn, float16, float32
from mlirfuse.target import target_of

GRADIENT = ContractionProblem(
    (), 256, 2304, 50176, float16, float32, 16, k_contiguous=(False, False), operand_sums=(1, 0)
)


def test_no_sums_are_always_legal() -> None:
    schedule = wgmma_schedule(GRADIENT, 64, 64)
    assert schedule.contraction is not None
    assert check_sums(schedule.contraction, schedule.layout, replace(GRADIENT, operand_sums=(0, 0))) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_are_those_of_the_operand(swapped: bool) -> None:
    problem = replace(GRADIENT, operand_sums=(0, 1) if swapped else (1, 0))
    for other in (False, True):
        schedule = wgmma_schedule(problem, 128, 128, swapped=other)
        assert schedule.contraction is not None
        assert (check_sums(schedule.contraction, schedule.layout, problem) is None) == (other == swapped)
    found = list(candidates(problem, target_of("sm_90a")))
    assert found
    assert all(schedule.contraction and schedule.contraction.swapped == swapped for schedule in found)


def test_long_rows_are_not_summed_from_stages() -> None:
    """A stage of two swizzle atoms a row, where k is contiguous; or elements that `ldmatrix` does not read."""
    problem = replace(GRADIENT, k_contiguous=(True, True))
    one, two = (wgmma_schedule(problem, 128, 128, atoms=atoms) for atoms in (1, 2))
    assert one.contraction is not None
    assert two.contraction is not None
    assert check_sums(one.contraction, one.layout, problem) is None
    assert "128" not in str(check_sums(one.contraction, one.layout, problem))
    assert "256 bytes" in str(check_sums(two.contraction, two.layout, problem))
    narrow = replace(problem, element=float8_e4m3fn)
    assert "1 bytes" in str(check_sums(one.contraction, one.layout, narrow))


def test_threads_without_partial_sums_read_nothing_that_changes() -> None:
    problem = replace(GRADIENT, element=float32)
    schedule = fma_schedule(problem, 32, 64)
    assert schedule.contraction is not None
    columns, _ = sum_columns(schedule.contraction, schedule.layout)
    assert columns < schedule.layout.repeat_stride(1)
    serial = replace(schedule.contraction, split=2, reduction="serial")
    assert check_sums(schedule.contraction, schedule.layout, problem) is None
    assert "leave threads over" in str(check_sums(serial, schedule.layout, problem))


def test_sums_take_time() -> None:
    """Little where tensor cores are busy, and no less than nothing."""
    target = target_of("sm_90a")
    machine = machine_of("sm_90a")
    plain = replace(GRADIENT, operand_sums=(0, 0))
    times = [
        predict_contraction(choose_contraction(problem, target, machine), problem, machine).microseconds
        for problem in (plain, GRADIENT, replace(GRADIENT, operand_sums=(2, 0)))
    ]
    assert times[0] <= times[1] <= times[2] < 1.1 * times[0]

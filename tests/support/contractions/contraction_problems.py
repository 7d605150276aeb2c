"""Contractions that tests choose schedules for, and the device that these are for."""

from __future__ import annotations

from dataclasses import replace

import mlirfuse as mf
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of

H200 = target_of("sm_90a")


def problem(m: int | None, n: int, k: int, dtype: mf.DType = mf.bfloat16, **fields: object) -> ContractionProblem:
    accumulator = mf.float32 if dtype.bits == 16 else dtype
    return replace(ContractionProblem((), m, n, k, dtype, accumulator, 16), **fields)  # type: ignore[arg-type]


def chosen(given: ContractionProblem, chip: str = "sm_90a") -> tuple[Schedule, ContractionSchedule]:
    """What is chosen for a product on a chip, and its part for contractions."""
    schedule = choose_contraction(given, target_of(chip), machine_of(chip))
    assert schedule.contraction is not None
    return schedule, schedule.contraction

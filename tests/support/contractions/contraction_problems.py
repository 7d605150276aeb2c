"""Contractions that tests choose schedules for, and the device that these are for."""

from __future__ import annotations

from dataclasses import replace

import mlirfuse as mf
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.target import target_of

H200 = target_of("sm_90a")


def problem(m: int | None, n: int, k: int, dtype: mf.DType = mf.bfloat16, **fields: object) -> ContractionProblem:
    accumulator = mf.float32 if dtype.bits == 16 else dtype
    return replace(ContractionProblem((), m, n, k, dtype, accumulator, 16), **fields)  # type: ignore[arg-type]

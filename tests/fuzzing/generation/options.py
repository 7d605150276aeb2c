"""Options of `mf.fuse` for some programs, drawn apart from all else, so that the programs of seeds stay the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from tests.fuzzing.program import Program
from tests.fuzzing.types import FLOAT8, HALVES, kind

_TINY = 2.0**-60
"""Magnitudes below it may have subnormal squares."""


def with_options(program: Program) -> Program:
    """The program with options, or mostly as it is."""
    random = Random(f"options of {program.seed}")
    drawn = random.random()
    if drawn < 0.08:
        return replace(
            program, options={"grid_reduction": random.choice(("grid_sync", "last_block", "second_kernel", "atomics"))}
        )
    if drawn < 0.14:
        return replace(program, options={"mix_order": random.choice(("fused", "split"))})
    if drawn < 0.18:
        return replace(program, options={"dynamic_products": True})
    if drawn < 0.22 and _has_nothing_to_round_or_flush(program):
        return replace(program, options={"fast_math": True})
    if 0.22 <= drawn < 0.27:
        return replace(program, options={"fusion": "off"})
    return program


def _has_nothing_to_round_or_flush(program: Program) -> bool:
    """Whether `fast_math` must not change anything: no half precision, and no number near the subnormal ones."""
    for value in program.evaluate().values():
        if value.dtype in (*HALVES, *FLOAT8):
            return False
        if kind(value.dtype) == "float":
            size = np.abs(value.value[np.isfinite(value.value)])
            if np.any((size > 0) & (size < _TINY)):
                return False
    return not program.rows  # whose numbers are others

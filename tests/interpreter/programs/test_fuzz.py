"""520 random programs from fixed seeds, in the interpreter: right within their bounds, none refused.

`python -m tests.fuzzing` (`make fuzz`) runs others, and makes failing ones small; the number in a test's name is the
seed.
"""

from __future__ import annotations

import pytest

from tests.fuzzing.generation.generator import program_from_seed
from tests.fuzzing.running.backends import BACKENDS
from tests.fuzzing.running.check import RIGHT
from tests.fuzzing.running.pool import run_program

PROGRAMS = [
    *[("interpret", "small", seed) for seed in range(380)],
    *[("levels", "small", seed) for seed in range(10_000, 10_080)],
    *[("interpret", "middle", seed) for seed in range(20_000, 20_030)],
    *[("interpret", "wide", seed) for seed in range(30_000, 30_010)],
    *[("interpret", "aligned", seed) for seed in range(50_000, 50_020)],
]


@pytest.mark.parametrize(("backend", "profile", "seed"), PROGRAMS)
def test_program(backend: str, profile: str, seed: int) -> None:
    program = program_from_seed(seed, profile)
    outcome = run_program(BACKENDS[backend], program)
    assert outcome.kind == RIGHT, f"{outcome.kind}: {outcome.message}\n{program.text}"

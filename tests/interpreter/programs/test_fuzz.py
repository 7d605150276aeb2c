"""Random programs from fixed seeds, in the interpreter: right within their bounds, none refused.

86 in every run, 520 in `make test-full`.

`python -m tests.fuzzing` (`make fuzz`) runs others, and makes failing ones small; the number in a test's name is the
seed.
"""

from __future__ import annotations

import pytest

from tests.fuzzing.generation.generator import program_from_seed
from tests.fuzzing.running.backends import BACKENDS
from tests.fuzzing.running.check import RIGHT
from tests.fuzzing.running.pool import run_program
from tests.support.pairwise import FULL

KINDS = (
    ("interpret", "small", 0, 380),
    ("levels", "small", 10_000, 80),
    ("interpret", "middle", 20_000, 30),
    ("interpret", "wide", 30_000, 10),
    ("interpret", "aligned", 50_000, 20),
)
"""Backend, profile, first seed, and how many programs there are."""

PROGRAMS = [
    (backend, profile, first + number)
    for backend, profile, first, count in KINDS
    for number in range(count if FULL else count // 6)
]


@pytest.mark.parametrize(("backend", "profile", "seed"), PROGRAMS)
def test_program(backend: str, profile: str, seed: int) -> None:
    program = program_from_seed(seed, profile)
    outcome = run_program(BACKENDS[backend], program)
    assert outcome.kind == RIGHT, f"{outcome.kind}: {outcome.message}\n{program.text}"

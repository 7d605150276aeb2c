"""Random programs on the GPU: right within their bounds, all elements written, a second call equal to the bit."""

from __future__ import annotations

import pytest

from mlirfuse.runtime import workspace
from mlirfuse.runtime.arrays import result_checks
from tests.fuzzing.generation.generator import program_from_seed
from tests.fuzzing.running.backends import BACKENDS
from tests.fuzzing.running.check import RIGHT
from tests.fuzzing.running.pool import run_program

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

PROGRAMS = [
    *[("large", seed) for seed in range(40_000, 40_240)],
    *[("wide", seed) for seed in range(50_000, 50_020)],
    *[("aligned_large", seed) for seed in range(60_000, 60_040)],
]


@pytest.mark.parametrize(("profile", "seed"), PROGRAMS)
def test_program(profile: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(result_checks.CHECK, "1")
    monkeypatch.setenv(workspace.CHECK, "1")
    program = program_from_seed(seed, profile)
    outcome = run_program(BACKENDS["gpu"], program)
    assert outcome.kind == RIGHT, f"{outcome.kind}: {outcome.message}\n{program.text}"

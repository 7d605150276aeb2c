"""The benchmark of einsums: its table, and its summary."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mlirfuse import builder as mf
from tests.support.harnesses.builder_harness import run

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def einsum(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import einsum

    return einsum


def test_the_table_has_forty_models_in_two_dtypes(einsum) -> None:
    from survey_programs.einsums import MODELS, THUNDER
    from survey_programs.program import duplicates

    programs = einsum.all_programs(table="einsums")
    assert not duplicates(programs)
    assert len(THUNDER) == 6
    assert sum(map(len, MODELS.values())) >= 40
    assert len(programs) == 2 * (6 + sum(map(len, MODELS.values())))


def test_each_equation_is_numpys(einsum) -> None:
    for program in [p for p in einsum.all_programs(table="einsums") if "f32" in p.name]:
        equation = program.name.split()[0]
        sizes = {index: 2 + n % 2 for n, index in enumerate(program.sizes)}
        arrays = [np.ones([sizes[i] for i in term], np.float32) for term in equation.split("->")[0].split(",")]
        actual = run(lambda *xs, equation=equation: mf.einsum(equation, *xs), *arrays)
        np.testing.assert_array_equal(actual, np.einsum(equation, *arrays))


def test_the_peer_is_the_fastest(einsum, tmp_path) -> None:
    rows = [
        {"name": "a", "bytes": 1e6, "microseconds": {"mlirfuse": 2.0, "eager": 4.0, "jax": 3.0}},
        {"name": "b", "bytes": 1e6, "microseconds": {"mlirfuse": 2.0, "eager": 1.5}},
        {"name": "c", "failures": {"mlirfuse": "no"}},
    ]
    assert [einsum.lead(row) for row in rows] == [1.5, 0.75, math.inf]
    assert einsum.report(rows, tmp_path / "einsum.json") == 1
    found = json.loads((tmp_path / "einsum.json").read_text())
    assert found["below"] == ["b"]
    assert found["geomean"] == pytest.approx(math.sqrt(1.5 * 0.75))

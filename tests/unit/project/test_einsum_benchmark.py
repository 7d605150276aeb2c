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
    from survey_programs.einsums import LARGER, MODELS, THUNDER
    from survey_programs.program import duplicates

    programs = einsum.all_programs(table="einsums")
    assert not duplicates(programs)
    assert len(THUNDER) == 6
    assert sum(map(len, MODELS.values())) >= 40
    assert len(programs) == 2 * (len(THUNDER) + len(LARGER) + sum(map(len, MODELS.values())))
    shapes = [[a.shape for a in p.arguments()] for p in programs if "thunder bij,jk->bik f32" in f"{p.domain} {p.name}"]
    assert shapes[:3] == [[(2, 16, 16), (16, 16)], [(2, 16, 1), (16, 16)], [(2, 16, 16), (1, 16)]]


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


def test_a_large_einsum_of_bytes_should_reach_the_rate_of_the_memory(einsum, tmp_path) -> None:
    times = {"microseconds": {"mlirfuse": 20.0, "eager": 40.0}, "bytes": 6.4e7, "roofline_us": 15.0}
    rows = [{"name": "a", "bound": "bytes", **times}, {"name": "b", "bound": "products", **times}]
    assert einsum.report(rows, tmp_path / "einsum.json") == 1
    assert json.loads((tmp_path / "einsum.json").read_text())["below_memory"] == ["a"]
    rows[0]["roofline_us"] = 16.0
    assert einsum.report(rows, tmp_path / "einsum.json") == 0


def test_host_times_have_limits_relative_to_a_bare_launch(einsum, tmp_path) -> None:
    from einsum_calls import BARE, host_limits, thunder

    names = [program.name for program in thunder(einsum.all_programs(table="einsums"))]
    assert len(names) == 6
    measured = {BARE: 5.0, names[0]: 7.9, f"{names[0]}, out=": 6.1, "view: transpose": 2.9}
    limits = host_limits(measured)
    assert [(limit.most, limit.holds) for limit in limits] == [(1.6, True), (1.2, False), (0.6, True)]
    row = {"name": "a", "bytes": 1e6, "microseconds": {"mlirfuse": 2.0, "eager": 4.0}}
    assert einsum.report([row], tmp_path / "einsum.json", limits[:1]) == 0
    assert einsum.report([row], tmp_path / "einsum.json", limits) == 1
    assert json.loads((tmp_path / "einsum.json").read_text())["calls"][1]["most"] == 1.2


def test_first_calls_have_limits_by_operands(einsum, tmp_path) -> None:
    times = {"microseconds": {"mlirfuse": 2.0, "eager": 4.0}, "bytes": 1e6}
    rows = [
        {"name": "ij,jk->ik bf16", "first_call_seconds": {"mlirfuse": 0.4}, **times},
        {"name": "ij,jk,kl->il bf16", "first_call_seconds": {"mlirfuse": 0.9}, **times},
    ]
    assert einsum.report(rows, tmp_path / "einsum.json") == 0
    rows[0]["first_call_seconds"]["mlirfuse"] = 0.6
    assert einsum.report(rows, tmp_path / "einsum.json") == 1


@pytest.mark.parametrize("name", ["transpose", "diagonal", "reshape", "identity"])
def test_views_are_views(einsum, name) -> None:
    from einsum_calls import VIEWS

    import mlirfuse

    x = np.arange(1024, dtype=np.float32).reshape(4, 16, 16)
    assert np.shares_memory(np.asarray(mlirfuse.fuse(VIEWS[name], target="interpret")(x)), x)

"""How good predictions are: compared with the candidates that were measured on an H200, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.support.serialization import to_plain

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import prediction

    return prediction


@pytest.mark.parametrize(
    ("registers", "near", "error", "rank", "choice"),
    [(True, 0.785, 0.195, 0.83, 1.055), (False, 0.77, 0.205, 0.81, 1.05)],
)
def test_predictions_are_as_near_as_they_were(
    tool: ModuleType, registers: bool, near: float, error: float, rank: float, choice: float
) -> None:
    measured = [m for m in tool.read(tool.RESULTS) if not m.stack]
    found = tool.figures(measured, tool.predicted(measured, machine_of("sm_90a"), registers=registers))
    assert found.count > 2000
    assert found.near >= near
    assert found.error <= error
    assert found.rank >= rank
    assert found.choice <= choice


def test_no_family_is_off_as_a_whole(tool: ModuleType) -> None:
    measured = [m for m in tool.read(tool.RESULTS) if not m.stack]
    for family in {m.family for m in measured}:
        part = [m for m in measured if m.family == family]
        times = tool.predicted(part, machine_of("sm_90a"), registers=True)
        ratios = sorted(t.microseconds / m.us for m, t in zip(part, times, strict=True))
        assert 0.85 < ratios[len(ratios) // 2] < 1.15, family


def test_the_reduced_form_is_read_as_it_was(tool: ModuleType, tmp_path: Path) -> None:
    measured = tool.read(tool.RESULTS)[:300]
    path = tmp_path / "reduced.json"
    path.write_text(tool.reduced(measured))
    assert tool.read(path) == tool.sample(measured)


def test_what_candidates_writes_is_read(tool: ModuleType, tmp_path: Path) -> None:
    first = tool.read(tool.RESULTS)[0]
    plain = {
        "program": first.program,
        "kind": "rows",
        "family": first.family,
        "problem": tool._short(first.problem, {}) | {"extents": [None, *first.problem.extents[1:]]},
        "schedule": to_plain(first.schedule),
        "shapes": [list(first.problem.extents)],
        "us": first.us,
        "registers": [first.registers],
        "stack": [0],
    }
    path = tmp_path / "candidates.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in (plain, plain | {"chosen": True}, plain | {"kind": "product"})))
    assert tool.read(path) == [first]


def test_it_prints_figures_by_family(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["prediction.py", "--worst", "1"])
    assert tool.main() == 0
    text = capsys.readouterr().out
    assert "rank correlation" in text
    assert "us predicted" in text

"""How good predictions are: compared with the candidates that were measured on an H200, without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
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
    ("results", "registers", "near", "error", "rank", "choice"),
    [
        # When these were measured, loops that store loaded for one step at a time.
        (0, True, 0.778, 0.212, 0.84, 1.04),
        (0, False, 0.745, 0.222, 0.82, 1.039),
        (1, True, 0.74, 0.29, 0.52, 1.075),
        (1, False, 0.73, 0.305, 0.5, 1.085),
        (2, True, 0.86, 0.16, 0.75, 1.045),
        (2, False, 0.84, 0.17, 0.7, 1.055),
        (3, True, 0.83, 0.26, 0.46, 1.045),
        (3, False, 0.84, 0.25, 0.48, 1.045),
        (4, True, 0.91, 0.195, 0.359, 1.04),
        (4, False, 0.89, 0.2, 0.32, 1.04),
    ],
)
def test_predictions_are_as_near_as_they_were(
    tool: ModuleType, results: int, registers: bool, near: float, error: float, rank: float, choice: float
) -> None:
    measured = [m for m in tool.read(tool.RESULTS[results]) if not m.stack]
    found = tool.figures(measured, tool.predicted(measured, machine_of("sm_90a"), registers=registers))
    assert found.count > 200
    assert found.near >= near
    assert found.error <= error
    assert found.rank >= rank
    assert found.choice <= choice


def test_no_family_is_off_as_a_whole(tool: ModuleType) -> None:
    measured = [m for path in tool.RESULTS for m in tool.read(path) if not m.stack]
    for family in {m.family for m in measured}:
        part = [m for m in measured if m.family == family]
        times = tool.predicted(part, machine_of("sm_90a"), registers=True)
        ratios = sorted(t.microseconds / m.us for m, t in zip(part, times, strict=True))
        assert 0.85 < ratios[len(ratios) // 2] < 1.15, family


def test_the_reduced_form_is_read_as_it_was(tool: ModuleType, tmp_path: Path) -> None:
    for results in tool.RESULTS:
        measured = tool.read(results)[:150]
        path = tmp_path / results.name
        path.write_text(tool.reduced(measured))
        assert tool.read(path) == tool.sample(measured)
    assert measured[0].problem.arrays


def test_what_candidates_writes_is_read(tool: ModuleType, tmp_path: Path) -> None:
    first = next(m for m in tool.read(tool.RESULTS[0]) if m.problem.arrays)
    first = replace(first, file="candidates")
    plain = {
        "program": first.program,
        "kind": "rows",
        "family": first.family,
        "problem": tool._short(first.problem, {}) | {"extents": [None, *first.problem.extents[1:]], "read_widths": [2]},
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

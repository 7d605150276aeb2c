"""`mlirfuse calibrate` on a GPU: every microbenchmark runs, and its figures are near the shipped ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mlirfuse.machine import lookup
from mlirfuse.machine.files import read
from mlirfuse.machine.model import QUANTITIES
from mlirfuse.tools.cli import main

cupy = pytest.importorskip("cupy")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cupy.is_available(), reason="no GPU"),
    pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="it measures: run it with -n 0"),
]

FACTOR = 4
"""How far a figure may be from a shipped one that was measured; those from data sheets may be further away."""


def test_a_few_quantities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lookup.VARIABLE, str(tmp_path))
    assert main(["calibrate", "--only", "clock", "l2_latency", "graph_launch", "f32_fma_per_sm", "grid_barrier"]) == 0
    (path,) = tmp_path.glob("*.json")
    model = read(path).model
    assert 3e8 < model.clock < 4e9
    assert model.l2_latency < 2e-6
    assert 1.5e-7 < model.graph_launch < 2e-5
    assert model.f32_fma_per_sm == pytest.approx(model.clock * 128, rel=0.1) or model.f32_fma_per_sm == pytest.approx(
        model.clock * 64, rel=0.1
    )
    assert model.grid_barrier > model.l2_latency


@pytest.mark.timeout(400)
def test_every_quantity_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model.json"
    assert main(["calibrate", "--out", str(out)]) == 0
    assert "not measured" not in capsys.readouterr().out
    file = read(out)
    plain = json.loads(out.read_text())["quantities"]
    shipped = lookup.machine_of(file.model.chip, file.model.name)
    far = {}
    for name in QUANTITIES:
        value, known = getattr(file.model, name), getattr(shipped, name)
        assert plain[name]["source"].startswith("measured") or value == 0, name
        is_measured = shipped.sources[name].startswith("measured")
        if is_measured and not 1 / FACTOR < value / known < FACTOR:
            far[name] = (value, known)
    assert not far

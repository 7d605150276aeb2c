"""Benchmarks in another process: its results, timeouts, crashes, and what is written of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.machine import lookup, machine_of
from mlirfuse.machine.files import read
from mlirfuse.target import target_of
from mlirfuse.tools.calibration import worker
from mlirfuse.tools.calibration.benchmark import Gpu, Microbenchmark
from mlirfuse.tools.calibration.results import measured, model_of, shown
from mlirfuse.tools.calibration.runner import Outcome, outcomes
from mlirfuse.tools.calibration.table import BY_NAME
from mlirfuse.tools.cli import main
from mlirfuse.tools.commands import calibrate
from tests.support.fakes.fake_gpu import FakeGpu

SCRIPT = """
import json, os, sys, time
say = lambda **message: print(json.dumps(message), flush=True)
for name in sys.argv[1:]:
    say(begins=name)
    if name == "crash":
        print("illegal address", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "hang":
        time.sleep(60)
    if name == "noise":
        print("a library says hello", flush=True)
    if name == "fail":
        say(name=name, error="no such instruction")
    else:
        say(name=name, values={name: [1.0, 2.0, 3.0]})
"""


def _command(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_a_benchmark_that_fails_costs_itself_alone() -> None:
    begun: list[str] = []
    found = {each.name: each for each in outcomes(_command(SCRIPT), ["a", "crash", "fail", "noise"], 20, begun.append)}
    assert begun == list(found) == ["a", "crash", "fail", "noise"]
    assert found["a"].values == {"a": [1.0, 2.0, 3.0]}
    assert found["crash"].error == "the process ended with code 3: illegal address"
    assert found["fail"].error == "no such instruction"
    assert found["noise"].values


def test_a_benchmark_that_hangs_is_ended() -> None:
    found = {each.name: each for each in outcomes(_command(SCRIPT), ["hang", "b"], 1)}
    assert found["hang"].error == "took longer than 1 s"
    assert found["b"].values


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; sys.exit('no GPU here')", "ended with code 1: no GPU here"),
        ("pass", "ended without a word"),
        ("import time; time.sleep(60)", "did nothing for 1 s"),
    ],
)
def test_a_process_that_does_not_start_is_an_error(script: str, message: str) -> None:
    with pytest.raises(RuntimeLaunchError, match=message):
        list(outcomes(_command(script), ["a"], 1))


def test_the_worker_goes_on_after_an_error() -> None:
    def fails(_: Gpu) -> Mapping[str, float]:
        raise ValueError("of some kind\nand more")

    broken = Microbenchmark(("clock",), "", 0.1, fails)
    good = Microbenchmark(("dram_latency",), "", 0.1, lambda _: {"dram_latency": 4e-7})
    said: list[dict[str, object]] = []
    worker.run(FakeGpu("sm_90a"), [broken, good], said.append)
    assert said == [
        {"begins": "clock"},
        {"name": "clock", "error": "ValueError: of some kind"},
        {"begins": "dram_latency"},
        {"name": "dram_latency", "values": {"dram_latency": [4e-7] * 3}},
    ]


def test_what_was_not_measured_stays() -> None:
    benchmarks = [BY_NAME[name] for name in ("clock", "graph_launch", "l2_read_bandwidth", "dram_latency")]
    found = list(
        measured(
            benchmarks,
            {
                "clock": Outcome("clock", {"clock": [1.9e9, 1.95e9, 1.8e9]}),
                "graph_launch": Outcome("graph_launch", error="took longer than 60 s"),
                "l2_read_bandwidth": Outcome("l2_read_bandwidth", {"l2_read_bandwidth": [5e20]}),
            },
        )
    )
    errors = {each.quantity.name: each.error for each in found}
    assert not errors["clock"]
    assert errors["graph_launch"] == "took longer than 60 s"
    assert errors["l2_read_bandwidth"].startswith("l2_read_bandwidth is 5e+20; it must be 1e+10 to")
    assert errors["l2_loaded_latency"] == "it has no result"
    assert errors["dram_latency"] == "it was not run"
    assert found[0].value == 1.9e9
    assert found[0].is_noisy
    base = machine_of("sm_90a")
    model = model_of("NVIDIA H200", target_of("sm_90a"), found, base)
    assert model.clock == 1.9e9
    assert model.sources["clock"].startswith("measured 20")
    assert model.graph_launch == base.graph_launch
    assert model.sources["graph_launch"] == base.sources["graph_launch"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.26e12, "B/s", "4.26 TB/s"),
        (3.6e-7, "s", "360 ns"),
        (2e-6, "s", "2 us"),
        (132, "SM", "132 SM"),
        (0, "s", "0 s"),
    ],
)
def test_values_are_shown_with_prefixes(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An H200 whose benchmarks' process is `SCRIPT`; the directory of calibrated files."""

    class Runtime:
        getDeviceCount = staticmethod(lambda: 1)  # noqa: N815 (CuPy's name)

    class Cupy:
        cuda = type("cuda", (), {"runtime": Runtime})

    script = SCRIPT.replace("[1.0, 2.0, 3.0]", "[4.5e-7, 4.5e-7, 4.6e-7]")
    monkeypatch.setenv(lookup.VARIABLE, str(tmp_path / "machines"))
    monkeypatch.setattr(calibrate, "cupy", Cupy)
    monkeypatch.setattr(calibrate, "device_target", lambda _: target_of("sm_90a"))
    monkeypatch.setattr(calibrate, "device_name", lambda _: "NVIDIA H200")
    monkeypatch.setattr(calibrate, "worker_command", lambda _: _command(script))
    lookup.forget()
    return tmp_path / "machines"


def test_calibrate_keeps_what_it_measures(device: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--only", "dram_latency", "atomic_latency"]) == 0
    text = capsys.readouterr().out
    assert "450 ns" in text
    nanoseconds = lookup.shipped_models()["h200"].dram_latency * 1e9
    assert f"{nanoseconds:.0f} ns" in text
    assert f"{450 / nanoseconds:.2f}" in text
    file = read(device / "nvidia-h200.json")
    assert (file.devices, file.generic_for) == (("NVIDIA H200",), ("sm_90",))
    lookup.forget()
    assert machine_of("sm_90a", "NVIDIA H200").dram_latency == 4.5e-7


def test_calibrate_writes_where_it_is_told(device: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    assert main(["calibrate", "--only", "dram_latency", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["quantities"]["dram_latency"]["value"] == 4.5e-7
    assert not device.exists()


def test_calibrate_measures_nothing_out_of_range(device: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--only", "dram_bandwidth"]) == 1
    assert "not measured: dram_bandwidth: dram_bandwidth is 4.5e-07" in capsys.readouterr().out


def test_a_dry_run_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert f"{len(BY_NAME)} microbenchmarks" in text
    assert "wgmma_16bit_per_sm" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "speed"], "--only: speed is measured by no benchmark"),
        (["--timeout", "0"], "--timeout: 0 seconds are none"),
        (["--device", "7"], "--device: there is no CUDA device 7"),
    ],
)
def test_bad_calls(arguments: list[str], message: str, device: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *arguments]) == 1
    assert message in capsys.readouterr().err

"""The parts of the benchmarks that need no GPU: command line, targets, tables, files."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from rich.console import Console

import mlirfuse as mf

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import report

    return report


@pytest.fixture
def targets(report: ModuleType) -> ModuleType:
    import layernorm_targets

    return layernorm_targets


@pytest.fixture
def layernorm(report: ModuleType) -> ModuleType:
    import layernorm

    return layernorm


@pytest.fixture
def timing(report: ModuleType) -> ModuleType:
    import timing

    return timing


def results(report: ModuleType, mlirfuse_us: float, quack_us: float = 30.0):
    """Two sizes and a softmax at 25 us of memcpy; quack failed at the second size."""
    measurements = [
        report.Measurement(
            "layernorm",
            8192,
            4096,
            8192 * 4096 * 2,
            {"memcpy": 25.0, "mlirfuse": mlirfuse_us, "torch.compile": 50.0, "quack": quack_us},
            {},
            0.2,
        ),
        report.Measurement(
            "layernorm",
            8192,
            5140,
            8192 * 5140 * 2,
            {"memcpy": 25.0, "mlirfuse": mlirfuse_us, "torch.compile": 50.0},
            {"quack": "AssertionError: N % 8"},
            0.3,
        ),
        report.Measurement("softmax", 1000, 4096, 1000 * 4096 * 2, {"memcpy": 25.0, "mlirfuse": mlirfuse_us}),
    ]
    accuracy = [report.Accuracy("softmax", 4096, 1e-3, 1e-3)]
    return report.Results({"gpu": "a GPU"}, measurements, accuracy, {"mlirfuse, out=, CuPy": 5.0})


def missed(targets: ModuleType, found) -> list[str]:
    return [c.name for c in targets.checks(found) if not c.passed]


def test_all_targets_met(report: ModuleType, targets: ModuleType) -> None:
    assert missed(targets, results(report, 26.0)) == []


def test_targets_missed_are_named(report: ModuleType, targets: ModuleType) -> None:
    names = missed(targets, results(report, 28.0, quack_us=27.0))
    assert names == [
        "LayerNorm: geomean of memcpy",
        "LayerNorm 4096: share of memcpy",
        "LayerNorm 5140: share of memcpy",
        "LayerNorm 4096: against quack",
    ]


def test_slow_host_first_call_and_inaccuracy_are_missed(report: ModuleType, targets: ModuleType) -> None:
    found = results(report, 26.0)
    found.host_microseconds["mlirfuse, out=, CuPy"] = 8.5
    found.accuracy[0] = report.Accuracy("softmax", 4096, 3e-3, 1e-3)
    found.measurements[0] = report.Measurement("layernorm", 1, 4096, 1, {}, {}, 0.6)
    assert missed(targets, found) == [
        "slowest first call, s",
        "mlirfuse, out=, CuPy: host time, us",
        "softmax 4096: error, of torch's",
    ]


def test_a_cliff_is_seen_between_its_neighbours(report: ModuleType, targets: ModuleType) -> None:
    def at(columns: int, us: float):
        return report.Measurement("layernorm", 8192, columns, 1, {"memcpy": 10.0, "mlirfuse": us})

    sizes = [at(4096, 10.0), at(5140, 10.8), at(12288, 10.0)]
    assert missed(targets, report.Results({}, sizes)) == ["LayerNorm 5140: against its neighbours"]


def test_bandwidth_counts_what_is_read_and_written(report: ModuleType) -> None:
    m = results(report, 26.0).measurements[0]
    assert m.gigabytes_per_second("memcpy") == pytest.approx(2 * 8192 * 4096 * 2 / 25e-6 / 1e9)
    assert m.ratio("mlirfuse") == pytest.approx(25 / 26)
    assert m.ratio("nothing") is None


def test_geomean(report: ModuleType) -> None:
    assert report.geomean([0.5, 2.0]) == pytest.approx(1.0)
    assert math.isnan(report.geomean([]))


def test_table_shows_failures_and_shares(report: ModuleType) -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(report.measurement_table("norms", results(report, 25.0).of("layernorm")))
    text = console.export_text()
    assert "failed" in text
    assert "1.000" in text
    assert "5140" in text


def test_json_holds_ratios_and_checks(report: ModuleType, targets: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    found = results(report, 26.0)
    report.write_json(found, targets.checks(found), path)
    data = json.loads(path.read_text())
    assert data["measurements"][0]["share_of_ceiling"]["mlirfuse"] == pytest.approx(25 / 26)
    assert data["measurements"][1]["failures"] == {"quack": "AssertionError: N % 8"}
    assert all(c["passed"] for c in data["checks"])


def test_plot(report: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "r.png"
    report.write_plot(results(report, 26.0), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_report_fails_where_mlirfuse_has_no_time(report: ModuleType, layernorm: ModuleType, tmp_path: Path) -> None:
    good = results(report, 26.0)
    assert layernorm.report(good, tmp_path) == 0
    good.measurements[2].microseconds.pop("mlirfuse")
    assert layernorm.report(good, tmp_path) == 1


def test_command_line(layernorm: ModuleType) -> None:
    options = layernorm.parse_arguments([])
    assert options.only == ("layernorm", "rows", "host")
    assert options.sizes is None
    options = layernorm.parse_arguments(["--only", "rows", "--sizes", "4096,5140", "--skip-peers", "--out", "/x"])
    assert options.only == ("rows",)
    assert options.sizes == (4096, 5140)
    assert options.skip_peers
    assert options.out == Path("/x")


@pytest.mark.parametrize("arguments", [["--sizes", "0"], ["--sizes", "a"], ["--only", "gemm"]])
def test_command_line_refuses(layernorm: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        layernorm.parse_arguments(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_graphs_are_long_enough_and_rotate_over_whole_sets(timing: ModuleType) -> None:
    for nbytes in (2 * 8192 * 768, 2 * 8192 * 20480, 2**28):
        sets = timing.input_sets(nbytes)
        calls = timing.calls_in_graph(nbytes, sets)
        assert calls % sets == 0
        assert calls * 2 * nbytes / 4e12 >= 600e-6
    assert timing.input_sets(12_000_000) == 8
    assert timing.input_sets(2**28) == 4


def test_speed_is_compared_within_rounds(timing: ModuleType) -> None:
    """The clock drops in the middle of the contest, for one contestant a repetition earlier than for the other."""
    reference, own = (50.0,) * 8 + (60.0,) * 7, (48.0,) * 7 + (57.6,) * 8
    timings = {"ours": timing.Timing(57.6, own), "theirs": timing.Timing(50.0, reference)}
    contest = timing.Contest(timings)
    assert contest.speed("ours", "theirs") == pytest.approx(60 / 57.6)
    assert contest.speed("ours", "absent") is None


def test_host_time_is_per_call_and_measured_alternately(timing: ModuleType) -> None:
    import time

    order: list[str] = []

    def note(name: str, seconds: float) -> None:
        if order[-1:] != [name]:
            order.append(name)
        time.sleep(seconds)

    calls = {"short": lambda: note("short", 1e-5), "long": lambda: note("long", 1e-4)}
    times = timing.host_us(calls, lambda: None)
    assert 10 < times["short"] < times["long"] < 5000
    assert order == ["short", "long"] * (len(order) // 2)


def test_functions_agree_with_numpy(layernorm: ModuleType) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 96)).astype(np.float16)
    w = random.standard_normal(96).astype(np.float16)
    fused = {name: mf.fuse(fn, target="interpret") for name, fn in layernorm.FUSED.items()}
    h = x.astype(np.float64)
    exp = np.exp(h - h.max(-1, keepdims=True))
    expected = {
        "rms_norm": h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5) * w,
        "softmax": exp / exp.sum(-1, keepdims=True),
        "log_softmax": np.log(exp / exp.sum(-1, keepdims=True)),
    }
    for name, reference in expected.items():
        got = fused[name](x, *[w] * layernorm.PARAMETERS[name])
        np.testing.assert_allclose(got, reference, rtol=2e-3, atol=2e-3)

"""The parts of the backward benchmark that need no GPU: command line, targets, the functions that are timed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
BF16 = ml_dtypes.bfloat16


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import norm_backward

    return norm_backward


@pytest.fixture
def targets(benchmark_module: ModuleType) -> ModuleType:
    import norm_backward_targets

    return norm_backward_targets


def results(module: ModuleType, shape: tuple[int, int], ours: float, **found):
    """One size at which torch.add takes 90 us, quack 101 and split kernels 200."""
    times = {"torch.add": 90.0, "mlirfuse": ours, "quack": 101.0, "mlirfuse mix-order off": 200.0}
    m = module.Measurement("rms_norm", *shape, 1, times, {}, 0.3, ceiling="torch.add", streams=3, **found)
    return module.Results({}, [m])


def missed(targets: ModuleType, found) -> list[str]:
    return [c.name for c in targets.checks(found) if not c.passed]


def test_all_targets_met(benchmark_module: ModuleType, targets: ModuleType) -> None:
    found = results(benchmark_module, (576000, 384), 95.0, stack_bytes=0, repeatable=True)
    assert missed(targets, found) == []
    assert "rms_norm 576000 x 384: speedup over split kernels" in [c.name for c in targets.checks(found)]


def test_targets_missed_are_named(benchmark_module: ModuleType, targets: ModuleType) -> None:
    found = results(benchmark_module, (576000, 384), 120.0, stack_bytes=8, repeatable=False)
    found.accuracy.append(benchmark_module.Accuracy("rms_norm dw", 384, 3e-3, 1e-3))
    assert missed(targets, found) == [
        "geomean of torch.add",
        "rms_norm 576000 x 384: share of torch.add",
        "rms_norm 576000 x 384: against quack",
        "rms_norm 576000 x 384: speedup over split kernels",
        "rms_norm 576000 x 384: bytes of stack",
        "rms_norm 576000 x 384: equal bits in many runs",
        "rms_norm dw 384: error, of torch's",
    ]


def test_other_sizes_have_a_lower_bound(benchmark_module: ModuleType, targets: ModuleType) -> None:
    assert missed(targets, results(benchmark_module, (1024, 4096), 100.0)) == []
    name = "rms_norm 1024 x 4096: share of torch.add"
    assert name in missed(targets, results(benchmark_module, (1024, 4096), 130.0))


def test_bandwidth_counts_three_arrays(benchmark_module: ModuleType) -> None:
    m = benchmark_module.Measurement("rms_norm", 8, 8, 1000, {"mlirfuse": 1.0}, ceiling="torch.add", streams=3)
    assert m.gigabytes_per_second("mlirfuse") == pytest.approx(3.0)


def test_command_line(benchmark_module: ModuleType, targets: ModuleType) -> None:
    options = benchmark_module.parse_arguments([])
    assert options.kernels == ("rms_norm", "layer_norm")
    assert options.shapes == (*targets.TABLE, *targets.EXTRA)
    arguments = ["--shapes", "7x5140,1x8", "--kernels", "rms_norm", "--contestants", "mlirfuse,quack", "--compile-only"]
    options = benchmark_module.parse_arguments(arguments)
    assert options.shapes == ((7, 5140), (1, 8))
    assert options.contestants == ("mlirfuse", "quack")
    assert options.compile_only


@pytest.mark.parametrize("arguments", [["--shapes", "0x8"], ["--shapes", "8"], ["--kernels", "softmax"]])
def test_command_line_refuses(
    benchmark_module: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        benchmark_module.parse_arguments(arguments)
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize("kernel", ["rms_norm", "layer_norm"])
def test_functions_agree_with_numpy(benchmark_module: ModuleType, kernel: str) -> None:
    random = np.random.default_rng(0)
    dy, x = (random.standard_normal((6, 96)).astype(BF16) for _ in range(2))
    w = random.standard_normal(96).astype(BF16)
    g, h = dy.astype(np.float64), x.astype(np.float64)
    mean = h.mean(-1, keepdims=True) if kernel == "layer_norm" else np.zeros((6, 1))
    rstd = 1 / np.sqrt(((h - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    n, gw = (h - mean) * rstd, g * w.astype(np.float64)
    centre = gw.mean(-1, keepdims=True) if kernel == "layer_norm" else 0
    expected = [(gw - n * (gw * n).mean(-1, keepdims=True) - centre) * rstd, (g * n).sum(0), g.sum(0)]
    saved = [rstd] if kernel == "rms_norm" else [mean, rstd]
    got = mf.fuse(benchmark_module.FUSED[kernel], target="interpret")(dy, x, w, *(s.astype(np.float32) for s in saved))
    for result, reference in zip(got, expected[: len(got)], strict=True):
        np.testing.assert_allclose(result.astype(np.float64), reference, rtol=1e-2, atol=2e-2)

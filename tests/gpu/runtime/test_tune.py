"""Tuning on a GPU: schedules are measured, the fastest is kept on disk, and later compilations take it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.api import tuning
from mlirfuse.runtime.arrays.arrays import read_argument
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.tuning import random_arguments
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.serialization import from_plain
from mlirfuse.tools.cli import main
from tests.support.gpu.torch_arrays import torch

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

M, N, K = 128, 256, 4096
PRODUCT = f"""
SPECS = {{"product": ["bf16[{M},{K}]", "bf16[{N},{K}]"]}}
def product(x, w):
    return x @ w.T
"""

STATISTICS = """
from mlirfuse import sum
SPECS = {"statistics": ["f32[4096,768]", "float"]}
def statistics(x, scale):
    return x * scale - sum(x, axis=-1, keepdims=True), sum(x * x, axis=0)
"""


def product(x: Any, w: Any) -> Any:
    return x @ w.T


def statistics(x: Any, scale: float) -> Any:
    return x * scale - mf.sum(x, axis=-1, keepdims=True), mf.sum(x * x, axis=0)


def softmax(x: Any) -> Any:
    numerator = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return numerator / mf.sum(numerator, axis=-1, keepdims=True)


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "schedules.json"
    monkeypatch.setenv("MLIRFUSE_RECORDS", str(path))
    return path


def explained(fused: mf.Fused) -> str:
    (compiled,) = fused._compiled.values()
    return compiled.explain(verbose=True)


def test_the_fastest_is_kept_and_taken(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = records.parent / "products.py"
    file.write_text(PRODUCT)
    assert main(["tune", f"{file}:product", "--seconds", "10"]) == 0
    printed = capsys.readouterr().out
    (measured,) = re.findall(rf"{M} x {N} x {K} bfloat16, (\d+) of", printed)
    assert int(measured) > 3
    assert "not measured" not in printed
    (key, entry), *others = json.loads(records.read_text()).items()
    assert not others
    target = cuda.device_target(0)
    assert f" {target.chip} sms={target.sms} device={cuda.device_name(0)} " in key

    assert entry["microseconds"] > 1, "no kernel moves these operands in less"
    tuned, scheduled = mf.fuse(product), mf.fuse(product, schedule=from_plain(Schedule, entry["schedule"]))
    x, w = (torch.randn(rows, K, device="cuda").bfloat16() for rows in (M, N))
    exact = x.double() @ w.double().T
    result = tuned(x, w)
    torch.testing.assert_close(result.double(), exact, rtol=1e-2, atol=1e-1)
    assert torch.equal(result, scheduled(x, w))
    assert "tuned tile" in explained(tuned)


def test_the_command_tunes_kernels_without_contractions(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = records.parent / "rows.py"
    file.write_text(STATISTICS)
    assert main(["tune", f"{file}:statistics", "--seconds", "10"]) == 0
    assert "kept in" in capsys.readouterr().out
    tuned = mf.fuse(statistics)
    x = torch.randn(4096, 768, device="cuda")
    rows, columns = tuned(x, 0.5)
    assert "tuned tile" in explained(tuned)
    torch.testing.assert_close(rows, x * 0.5 - x.sum(-1, keepdim=True), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(columns, (x * x).sum(0), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:, 1:513], lambda x: x[::2]])
def test_the_first_call_tunes(records: Path, monkeypatch: pytest.MonkeyPatch, view: Any) -> None:
    """Arrays with strides, and arrays that begin at an odd element, too."""
    monkeypatch.setattr(tuning, "FIRST_CALL_SECONDS", 5.0)
    x = view(torch.randn(1024, 520, device="cuda"))
    tuned = mf.fuse(softmax, tune=True)
    torch.testing.assert_close(tuned(x), torch.softmax(x, -1))
    assert "tuned tile" in explained(tuned)
    kept = records.read_text()
    later = mf.fuse(softmax, tune=True)
    assert torch.equal(later(x), tuned(x))
    assert records.read_text() == kept


def test_extents_that_other_calls_get_as_numbers_stay_run_time_ones(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is tuned is what later calls take, though this function is faster with its rows as a number."""
    monkeypatch.setattr(tuning, "FIRST_CALL_SECONDS", 5.0)

    def spread(x: Any) -> Any:
        return x - mf.mean(mf.abs(x - mf.mean(x, axis=0, keepdims=True)), axis=0, keepdims=True)

    x = torch.randn(16000, 1000, device="cuda")
    tuned = mf.fuse(spread, tune=True)
    want = x - (x - x.mean(0, keepdim=True)).abs().mean(0, keepdim=True)
    torch.testing.assert_close(tuned(x), want, rtol=1e-4, atol=1e-4)
    assert "tuned tile" in explained(tuned)


def test_random_arguments_have_the_layout_of_a_calls(records: Path) -> None:
    base = torch.empty(64, 40, device="cuda", dtype=torch.bfloat16)
    for array in (base, base[1:, 3:], base.T, base[:, :1].expand(64, 40), base[:0]):
        given = read_argument(array, "x")
        for (made,) in random_arguments([given]):
            found = read_argument(made, "x")
            assert (found.shape, found.strides, found.dtype) == (given.shape, given.strides, given.dtype)
            assert found.alignment == given.alignment

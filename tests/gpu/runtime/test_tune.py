"""`mlirfuse tune` on a GPU: schedules are measured, the fastest is kept on disk, and later compilations take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.runtime.device import cuda
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.serialization import from_plain
from mlirfuse.tools.cli import main
from tests.support.gpu.torch_arrays import torch

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

M, N, K = 128, 256, 4096
SOURCE = f"""
SPECS = {{"product": ["bf16[{M},{K}]", "bf16[{N},{K}]"]}}
def product(x, w):
    return x @ w.T
"""


def product(x: Any, w: Any) -> Any:
    return x @ w.T


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "schedules.json"
    monkeypatch.setenv("MLIRFUSE_RECORDS", str(path))
    return path


def test_the_fastest_is_kept_and_taken(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = records.parent / "products.py"
    file.write_text(SOURCE)
    assert main(["tune", f"{file}:product", "--keep", "8"]) == 0
    printed = capsys.readouterr().out
    assert f"{M} x {N} x {K} bfloat16" in printed
    assert "without a time" not in printed
    (key, entry), *others = json.loads(records.read_text()).items()
    assert not others
    target = cuda.device_target(0)
    assert target.chip in key
    assert f"sms={target.sms}" in key

    assert entry["microseconds"] > 1, "no kernel moves these operands in less"
    tuned, scheduled = mf.fuse(product), mf.fuse(product, schedule=from_plain(Schedule, entry["schedule"]))
    x, w = (torch.randn(rows, K, device="cuda").bfloat16() for rows in (M, N))
    exact = x.double() @ w.double().T
    result = tuned(x, w)
    torch.testing.assert_close(result.double(), exact, rtol=1e-2, atol=1e-1)
    assert torch.equal(result, scheduled(x, w))
    assert "tuned tile" in next(iter(tuned._compiled.values())).explain()

"""What a type checker says of a user's program: the README's kind of function, and mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api")

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import numpy as np
from numpy.typing import NDArray

import mlirfuse as mf

Floats = NDArray[np.float32]


@mf.fuse
def rms_norm(x: Floats, weight: Floats, eps: float = 1e-5) -> Floats:
    scale = mf.rsqrt(mf.mean(x * x, axis=-1, keepdims=True) + eps)
    return mf.multiply(mf.where(mf.isfinite(x), x, 0.0) * scale, weight)


@mf.fuse(target="interpret", fast_math=True)
def statistics(x: mf.Tensor, *, correction: float = 0.0) -> tuple[mf.Tensor, mf.Tensor]:
    centred = x - x.mean(axis=0)
    return mf.sqrt(mf.mean(centred**2, axis=0)), mf.clip(mf.matmul(x, mf.matrix_transpose(x)), 0.0, 1.0)


class Layer:
    @mf.fuse
    def forward(self, x: Floats, bias: Floats) -> Floats:
        return mf.maximum(x, bias)


def use(x: Floats, weight: Floats) -> Floats:
    normed: Floats = rms_norm(x, weight, eps=1e-6)
    into: Floats = rms_norm(x, weight, out=np.empty_like(x))
    return Layer().forward(normed, into)
"""

MISTAKES = """
def wrong(x: Floats) -> None:
    rms_norm()
    rms_norm(x, x, epsilon=1.0)
    text: str = rms_norm(x, x)
    Layer().forward(x)
    mf.mean(x, axes=0)
    mf.exp("x")
"""


def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[str, int]:
    """mypy's report of a program and its exit code; the library is read as one that is installed."""
    program = tmp_path / "program.py"
    program.write_text(text)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n[mypy-mlirfuse.*]\nfollow_imports = silent\n")
    report, errors, code = mypy.run([str(program), "--config-file", str(config), f"--cache-dir={tmp_path / 'cache'}"])
    assert not errors
    return report, code


@pytest.mark.timeout(300)
def test_a_program_passes_strict_checks_and_its_mistakes_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, code = check(tmp_path, monkeypatch, PROGRAM)
    assert code == 0, report
    report, code = check(tmp_path, monkeypatch, PROGRAM + MISTAKES)
    lines = [line for line in report.splitlines() if ": error:" in line]
    first = PROGRAM.count("\n") + 3
    assert sorted({int(line.split(":")[1]) for line in lines}) == list(range(first, first + 6)), report

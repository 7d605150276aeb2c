"""Every example runs as it stands, in the interpreter, and checks its own result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "arrays.py")
NEEDS_TORCH = {"torch_autograd.py"}


def test_all_examples_are_found() -> None:
    assert {"epilogue.py", "layer_norm.py", "rms_norm.py", "softmax.py"} <= set(SCRIPTS)
    backward = {name for name in SCRIPTS if name.endswith("_backward.py")}
    assert len(backward) == 5
    assert set(SCRIPTS) >= NEEDS_TORCH


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_runs(script: str) -> None:
    if script in NEEDS_TORCH:
        pytest.importorskip("torch")
    # No GPU is visible, so that the test says the same on every machine.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, EXAMPLES / script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "largest error" in done.stdout

"""Every example runs as it stands, on the GPU, and checks its own result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "arrays.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_runs(script: str) -> None:
    done = subprocess.run([sys.executable, EXAMPLES / script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "largest error" in done.stdout

"""What a user is told to install, by the CUDA version of the driver; and the package as a type checker sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mlirfuse
from mlirfuse.support.installation import cuda_extra, how_to_launch


@pytest.mark.parametrize(
    ("version", "extra"),
    [(None, None), (11080, None), (12020, "cuda12"), (12090, "cuda12"), (13000, "cuda13"), (14010, "cuda13")],
)
def test_the_extra_fits_the_driver(version, extra):
    assert cuda_extra(version) == extra
    if extra:
        assert f"pip install 'mlirfuse[{extra}]'" in how_to_launch(version)


def test_a_driver_that_is_too_old_is_named():
    assert "CUDA 11.8" in how_to_launch(11080)


def test_no_driver_means_the_interpreter():
    assert "target='interpret'" in how_to_launch(None)


def test_python_m_runs_the_command():
    command = [sys.executable, "-m", "mlirfuse", "--version"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == f"mlirfuse {mlirfuse.__version__}\n"


def test_the_package_says_that_it_is_typed():
    assert (Path(mlirfuse.__file__).parent / "py.typed").exists()

"""Where libdevice is looked for, and when it is linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx import libdevice, to_ptx
from mlirfuse.target import target_of
from tests.support.harnesses.lowering_harness import COPY, EXP, compile_text, lower


@pytest.fixture
def without_libdevice(monkeypatch):
    monkeypatch.setattr(libdevice, "find", lambda: None)


def test_is_found_in_this_environment():
    path = libdevice.find()
    assert path is not None
    assert path.name == libdevice.FILE


def test_a_toolkit_named_by_the_environment_is_a_candidate():
    paths = list(libdevice.candidates({"CUDA_HOME": "/opt/cuda"}))
    assert Path("/opt/cuda/nvvm/libdevice/libdevice.10.bc") in paths
    wheel = next(i for i, path in enumerate(paths) if "site-packages" in path.parts)
    assert wheel < paths.index(Path("/opt/cuda/nvvm/libdevice/libdevice.10.bc"))


def test_functions_used():
    module = lower(EXP)
    to_ptx.to_nvvm(module.operation)
    assert libdevice.functions_used(module.operation) == ("__nv_expf",)


def test_a_math_call_is_inlined():
    ptx = compile_text(EXP)[0]["k"].ptx
    assert "ex2.approx" in ptx
    assert "__nv_" not in ptx


@pytest.mark.usefixtures("without_libdevice")
def test_missing_and_needed_is_an_error_that_names_the_function():
    with pytest.raises(CompileError, match=r"__nv_expf.*libdevice\.10\.bc was not found"):
        compile_text(EXP)


@pytest.mark.usefixtures("without_libdevice")
def test_missing_and_not_needed_is_no_error():
    assert ".entry k" in compile_text(COPY)[0]["k"].ptx


def test_ptx_leaves_the_module_alone():
    module = lower(EXP)
    to_ptx.to_nvvm(module.operation)
    before = str(module)
    to_ptx.ptx(module.operation, target_of("sm_90a"))
    assert str(module) == before

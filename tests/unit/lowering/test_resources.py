"""ptxas: found, run, read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx import ptxas
from mlirfuse.lowering.ptx.assembler import assemble
from mlirfuse.lowering.ptx.ptxas import ptxas_candidates
from mlirfuse.lowering.ptx.resources import KernelResources, parse_log
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import target_of
from tests.support.harnesses.lowering_harness import SCALE, compile_text

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas info    : Compiling entry function 'norm' for 'sm_90a'
ptxas info    : Function properties for norm
    96 bytes stack frame, 128 bytes spill stores, 160 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 96 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compile time = 24.953 ms
"""
PTX = """.visible .entry norm()
.maxntid 512, 1, 1
.explicitcluster
.reqnctapercluster 4, 1, 1
{
\tret;
}
"""


@pytest.fixture(scope="module")
def scale() -> KernelBinary:
    return compile_text(SCALE)[0]["scale_kernel"]


def test_parse_log_takes_the_kernel_s_own_part():
    assert parse_log(LOG, KernelBinary("norm", target_of("sm_90a"), PTX)) == KernelResources(
        name="norm",
        registers=255,
        spill_store_bytes=128,
        spill_load_bytes=160,
        stack_bytes=96,
        shared_bytes=4096,
        barriers=1,
        block=512,
        cluster=4,
    )
    other = parse_log(LOG, KernelBinary("other", target_of("sm_90a"), ".maxntid 32, 1, 1"))
    assert (other.registers, other.shared_bytes, other.stack_bytes, other.block, other.cluster) == (12, 0, 0, 32, 1)


def test_parse_log_keeps_what_costs_speed():
    """Once each: ptxas says it for every function that it compiles on the way."""
    loss = "wgmma.mma_async instructions are serialized due to non wgmma instructions in function 'norm'"
    log = LOG + 2 * f"ptxas info    : (C7510) Potential Performance Loss: {loss}\n"
    assert parse_log(log, KernelBinary("norm", target_of("sm_90a"), PTX)).losses == (loss,)


def test_parse_log_without_the_kernel():
    with pytest.raises(CompileError, match=r"reported on \['other', 'norm'\], not on missing"):
        parse_log(LOG, KernelBinary("missing", target_of("sm_90a"), PTX))


def test_assemble(scale):
    found = assemble(scale)
    assert found.name == "scale_kernel"
    assert 8 <= found.registers <= 40
    assert (found.spill_store_bytes, found.spill_load_bytes, found.stack_bytes, found.shared_bytes) == (0, 0, 0, 0)
    assert (found.block, found.cluster) == (128, 1)


def test_ptxas_refusing_quotes_the_line(scale):
    broken = replace(scale, ptx=scale.ptx.replace("mul.rn.f32", "mul.wrong.f32", 1))
    with pytest.raises(CompileError, match=r"scale_kernel: ptxas refuses .* line \d+: .*: mul\.wrong\.f32"):
        assemble(broken)


def test_architecture_that_ptxas_does_not_know(scale):
    with pytest.raises(CompileError, match="sm_42"):
        assemble(replace(scale, target=replace(scale.target, chip="sm_42")))


def test_no_ptxas(scale, monkeypatch):
    monkeypatch.setattr(ptxas, "installed", lambda: ())
    with pytest.raises(CompileError, match="ptxas was not found"):
        assemble(scale)


def test_candidates_follow_the_environment(tmp_path):
    on_path = tmp_path / "ptxas"
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    paths = list(ptxas_candidates({"PATH": str(tmp_path), "CUDA_HOME": "/opt/cuda"}))
    assert paths[:2] == [on_path, Path("/opt/cuda/bin/ptxas")]

"""Backward kernels down to PTX and ptxas: what loads them, and that no register is spilled."""

from __future__ import annotations

import re

import pytest
from backward import BACKWARD
from numerics import DTYPES

import mlirfuse as mf

SAMPLE = (
    ("rms_norm_backward", "bfloat16", 7),
    ("rms_norm_backward", "float16", 384),
    ("rms_norm_backward", "float32", 1000),
    ("rms_norm_backward", "bfloat16", 1280),
    ("rms_norm_backward", "bfloat16", 5140),
    ("rms_norm_backward", "float32", 8192),
    ("rms_norm_backward", "float16", 20480),
    ("layer_norm_backward", "float32", 40),
    ("layer_norm_backward", "bfloat16", 768),
    ("layer_norm_backward", "float16", 1600),
    ("layer_norm_backward", "bfloat16", 3000),
    ("layer_norm_backward", "float32", 4096),
    ("layer_norm_backward", "bfloat16", 8192),
    ("layer_norm_backward", "bfloat16", 16384),
    ("rms_norm_backward", "bfloat16", 20480),
    ("layer_norm_backward", "float16", 20480),
    ("layer_norm_backward", "bfloat16", 32768),
    ("layer_norm_backward", "bfloat16", 65536),
    ("layer_norm_backward", "float32", 65536),
)
"""Rows of one vector and of a cluster, whole and ragged, in the orders that the heuristics choose for them."""


def compiled(name: str, dtype: str, columns: int) -> mf.Compiled:
    backward = BACKWARD[name]
    return mf.fuse(backward.fn).lower(*backward.specs(columns, DTYPES[dtype])).compile()


@pytest.mark.parametrize(("name", "dtype", "columns"), SAMPLE, ids=str)
def test_no_spills(name: str, dtype: str, columns: int) -> None:
    (kernel,) = compiled(name, dtype, columns).resources
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes, kernel.stack_bytes) == (0, 0, 0)


def derived(ptx: str, parameter: str) -> set[str]:
    """The registers that hold a pointer parameter, or what is computed from it; loads do not pass it on."""
    (register,) = re.findall(rf"ld\.param\.b64\s+(%rd\d+), \[{parameter}\];", ptx)
    found = {register}
    moves = re.findall(r"^\s*(?!ld)[a-z][\w.]*\s+(%\w+), (.*);", ptx, re.MULTILINE)
    while True:
        more = {target for target, sources in moves if found & set(re.findall(r"%\w+", sources))}
        if more <= found:
            return found
        found |= more


def test_loads() -> None:
    """Tiles by asynchronous copies past the L1, weights by the read-only cache, the parts of other blocks not by it."""
    ptx = compiled("rms_norm_backward", "bfloat16", 384).as_text("ptx")
    fragments, stages = 3, 3
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], 16;", ptx)) == 2 * fragments * stages
    assert ptx.count("cp.async.commit_group") == stages
    assert re.findall(r"cp\.async\.wait_group\s+(\d)", ptx) == [str(stages - 1)]
    pointers = re.findall(r"\.param \.u64 \.ptr \.align \d+ (\w+)", ptx)
    weights, parts = pointers[2], pointers[-2]  # after the parts there are the semaphores only
    loads = re.findall(r"(ld\.global[\w.]*)\s+[^;]*\[(%rd\d+)[^\]]*\];", ptx)
    through = [op for op, address in loads if address in derived(ptx, parts)]
    assert through
    assert not [op for op in through if ".nc" in op]
    assert all(".nc" in op for op, address in loads if address in derived(ptx, weights))

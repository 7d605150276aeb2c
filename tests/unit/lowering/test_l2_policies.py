"""Eviction policies in the PTX of row kernels, and in what ptxas makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mlirfuse as mf
from mlirfuse.passes.gpu.assign_l2_policies import WAVE_SHARE
from mlirfuse.target import target_of
from tests.support.forms import fastest
from tests.support.reductions.numerics import DTYPES, FAMILIES
from tests.support.sass import needs_sass, sass_of

SAMPLE = (
    ("layer_norm", "float16", 768),
    ("layer_norm", "bfloat16", 1600),
    ("layer_norm", "float32", 4096),
    ("rms_norm", "float16", 5140),
    ("softmax", "float32", 1000),
    ("rms_norm", "float16", 16384),
)
"""Several rows a block and one, padded rows, no weights, fragments one after the other."""

_POLICY = re.compile(r"createpolicy\.fractional\.L2::(\w+)\.b64\s+(%rd\d+), 1\.0;")
_LOAD = re.compile(r"ld\.global(\.L1::no_allocate)?\.L2::cache_hint[^;]*, (%rd\d+);")
_CHOICE = re.compile(r"selp\.b64\s+(%rd\d+), (%rd\d+), (%rd\d+), %p\d+;")


def ptx_of(name: str, dtype: str, columns: int) -> str:
    """PTX with the fastest schedule whose rows are in registers, and of which a wave leaves most of the L2 alone."""
    family, kind = FAMILIES[name], DTYPES[dtype]
    specs = [mf.TensorSpec((None, columns), kind), *[mf.TensorSpec(columns, kind)] * family.vectors]
    target = target_of("sm_90a")

    def has_policies(s: mf.Schedule) -> bool:
        in_wave = target.sms * s.blocks_per_sm * s.layout.threads * s.layout.elements_per_thread * kind.itemsize
        return s.persistence == "registers" and 0 < in_wave <= WAVE_SHARE * target.l2_bytes

    schedule = fastest(family.fn, specs, has_policies)
    (binary,) = mf.fuse(family.fn, target="sm_90a", schedule=schedule).lower(*specs).compile().binaries.values()
    return binary.ptx


@pytest.mark.parametrize(("name", "dtype", "columns"), SAMPLE)
def test_every_load_has_the_policy_of_its_kind(name: str, dtype: str, columns: int) -> None:
    ptx = ptx_of(name, dtype, columns)
    policies = {register: priority for priority, register in _POLICY.findall(ptx)}
    ((streaming, many, few),) = [found for found in _CHOICE.findall(ptx) if found[1] in policies]
    assert (policies[many], policies[few]) == ("evict_normal", "evict_first")
    assert "26214400" in ptx  # half of the L2
    loads = _LOAD.findall(ptx)
    assert {policy for streamed, policy in loads if streamed} == {streaming}
    shared = {policies[policy] for streamed, policy in loads if not streamed}
    assert shared == ({"evict_last"} if FAMILIES[name].vectors else set())


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_weights_are_loaded_behind_the_wait(name: str) -> None:
    ptx = ptx_of(name, "float16", 4096)
    assert ptx.index("griddepcontrol.wait") < ptx.index("ld.global.L2::cache_hint")


@needs_sass
@pytest.mark.parametrize(("name", "dtype", "columns"), SAMPLE)
def test_policies_lie_in_pairs_of_registers(name: str, dtype: str, columns: int, tmp_path: Path) -> None:
    """ptxas 13.0 was seen to give `cp.async` with a policy an odd register, which is an illegal instruction."""
    code = sass_of(ptx_of(name, dtype, columns), tmp_path)
    registers = [int(n) for i in code for n in re.findall(r"desc\[UR(\d+)\]", i.operands)]
    assert registers
    assert all(n % 2 == 0 for n in registers)
    assert not [i for i in code if i.opcode.startswith(("STL", "LDL"))]

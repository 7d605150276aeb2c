"""The table of architectures: limits that agree with each other, and flags that agree with ptxas."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

import mlirfuse as mf
from mlirfuse.errors import CompileError, TargetError
from mlirfuse.lowering.ptx.ptxas import find_ptxas, run_ptxas
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.schedule.model.machine import PARTITIONS, RESERVED_SHARED
from mlirfuse.target import KIB, TARGETS, Target, target_of

WARP = 32

PER_SM = {
    80: (64, 32, 164),
    86: (48, 16, 100),
    87: (48, 16, 164),
    88: (48, 16, 100),
    89: (48, 24, 100),
    90: (64, 32, 228),
    100: (64, 32, 228),
    103: (64, 32, 228),
    110: (48, 24, 228),
    120: (48, 24, 100),
    121: (48, 24, 100),
}
"""Warps, blocks and KiB of shared memory of an SM, by compute capability times ten, as the sources in
`mlirfuse/target/table.py` have them."""

INSTRUCTIONS = {
    "has_float8_conversions": ("cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;", "cvt.rn.f16x2.e5m2x2 %r0, %h0;"),
    "has_tma": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0], %r1, [%r2];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r1}], [%r2];",
        "cp.async.bulk.prefetch.L2.global [%d0], %r1;",
        "mbarrier.arrive.expect_tx.shared.b64 %d1, [%r0], %r1;",
    ),
    "has_dependent_launch": ("griddepcontrol.wait;", "griddepcontrol.launch_dependents;"),
    "has_vector_reductions": (
        "red.global.add.v2.f32 [%d0], {%f0, %f1};",
        "red.global.add.v4.f32 [%d0], {%f0, %f1, %f0, %f1};",
    ),
    "has_packed_float32": ("fma.rn.f32x2 %d0, %d1, %d2, %d3;", "add.rn.f32x2 %d0, %d1, %d2;"),
    "has_clusters": ("barrier.cluster.arrive;", "barrier.cluster.wait;", "mapa.shared::cluster.u32 %r0, %r1, %r2;"),
    "has_setmaxnreg": ("setmaxnreg.inc.sync.aligned.u32 64;",),
    "has_wgmma": (
        "wgmma.fence.sync.aligned;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, 1, 1, 1, 0, 0;",
    ),
    "has_tcgen05": ("tcgen05.wait::ld.sync.aligned;",),
}
"""What an architecture has where the flag is set; the instructions that mlirfuse emits, `tcgen05` aside."""


def assembles(target: Target, *instructions: str) -> bool:
    """Whether ptxas takes the instructions for the target, in the PTX version that mlirfuse emits for it."""
    ptxas = find_ptxas()
    assert ptxas is not None
    body = "\n".join(instructions)
    registers = ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>;"
    head = f".version {target.ptx // 10}.{target.ptx % 10}\n.target {target.chip}\n.address_size 64\n"
    kernel = KernelBinary("k", target, f"{head}.visible .entry k() .maxntid 128 {{\n{registers}\n{body}\nret;\n}}\n")
    try:
        run_ptxas(ptxas, kernel)
    except CompileError as error:
        if not any(word in str(error) for word in ("not supported", "requires")):
            raise
        return False
    return True


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_limits_are_those_of_the_guide(target: Target) -> None:
    warps, blocks, shared = PER_SM[target.capability]
    assert (target.threads_per_sm, target.blocks_per_sm) == (warps * WARP, blocks)
    assert (target.shared_per_sm, target.registers_per_sm) == (shared * KIB, 64 * 1024)
    assert (target.max_threads_per_block, target.max_registers_per_thread) == (1024, 255)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_limits_agree_with_each_other(target: Target) -> None:
    assert target.shared_per_block + RESERVED_SHARED == target.shared_per_sm
    assert target.max_threads_per_block <= target.threads_per_sm
    assert target.blocks_per_sm * WARP <= target.threads_per_sm, "as many blocks of one warp fit"
    assert target.threads_per_sm % (PARTITIONS * WARP) == target.registers_per_sm % (PARTITIONS * WARP) == 0
    assert target.registers_per_sm // target.threads_per_sm >= 32, "a full SM leaves no thread without registers"
    assert target.portable_cluster in (1, 8)
    assert target.sms > 0
    assert target.l2_bytes % KIB == 0


def test_a_specific_architecture_has_the_limits_of_its_base() -> None:
    limits = [f.name for f in fields(Target) if not f.name.startswith("has_") and f.name not in {"chip", "ptx"}]
    for chip, target in TARGETS.items():
        if target.is_specific:
            assert all(getattr(target, name) == getattr(TARGETS[chip[:-1]], name) for name in limits)


def test_later_architectures_have_what_earlier_ones_have() -> None:
    """PTX for an architecture runs on all later ones; instructions of a name with an `a` are the exception."""
    bases = sorted((t for t in TARGETS.values() if not t.is_specific), key=lambda target: target.capability)
    for flag in INSTRUCTIONS:
        has = [getattr(target, flag) for target in bases]
        assert has == sorted(has), flag


def test_every_flag_has_its_instructions() -> None:
    flags = {field.name for field in fields(Target) if field.name.startswith("has_")}
    assert flags | {"has_clusters"} == INSTRUCTIONS.keys()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_ptxas_takes_exactly_the_instructions_of_the_flags(target: Target) -> None:
    has = [text for flag, lines in INSTRUCTIONS.items() if getattr(target, flag) for text in lines]
    assert assembles(target, "createpolicy.fractional.L2::evict_last.b64 %d0, 1.0;", *has)
    for flag, lines in INSTRUCTIONS.items():
        if not getattr(target, flag):
            assert [text for text in lines if assembles(target, text)] == [], flag


def test_an_unknown_target_is_an_error_that_says_the_close_one() -> None:
    with pytest.raises(
        TargetError, match=r"unknown target 'sm90'\n  hint: did you mean sm_90\? known targets: sm_80, "
    ):
        target_of("sm90")
    with pytest.raises(TargetError, match=r"unknown target 'sm_75'\n  hint: known targets: sm_80, "):
        target_of("sm_75")
    with pytest.raises(TargetError, match="or 'interpret', which runs on the CPU"):
        mf.fuse(lambda x: x + 1, target="interpreter")


def test_explain_says_how_a_product_is_multiplied() -> None:
    specs = [mf.TensorSpec((128, 65536), mf.float16)] * 2
    explained = mf.fuse(lambda a, b: a @ b.T, target="sm_90a").lower(*specs).compile().explain(verbose=True)
    assert re.search(r", products by wgmma, k split over \d+ block", explained)

"""The architectures that mlirfuse compiles for; a new one is a line here (docs/targets.md).

Sources:
- Threads, blocks, registers and shared memory: CUDA Programming Guide 13.1, appendix "Compute Capabilities", tables 30
  ("Device and Streaming Multiprocessor Information") and 31 ("Memory Information"); table 27 of the CUDA C++
  Programming Guide 13.0 has the same. The guide leaves out sm_88, which has the limits of sm_86 by CCCL 3
  (`cuda/__device/arch_traits.h`); CCCL agrees on all others.
- Clusters of 8 are portable from compute capability 9.0 on (same guide, "Thread Block Clusters").
- SMs and L2: what the driver reports for the part that a comment names.
- Instructions: PTX ISA 9, "Target ISA Notes" of each. `tests/unit/target/test_table.py` asks ptxas for each of them.
- `ptx`: the first version that has the architecture (PTX ISA, "Release Notes"; LLVM's `NVPTX.td`) and all that mlirfuse
  emits for it: 7.4 has `createpolicy`, 8.1 conversions to float8 on sm_89 and vectors in `red`.

Left out: sm_107, which ptxas knows and LLVM 22 does not; sm_101, which is sm_110 by its old name; and the family
variants (`sm_100f`), whose code runs on later members of a family too but has nothing that mlirfuse uses and the base
architecture lacks.
"""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.target.architecture import Target

KIB = 1024

_AMPERE = Target("sm_80", 74, 108, 163 * KIB, 164 * KIB)  # A100
_CONSUMER = Target(  # RTX 3090
    "sm_86", 74, 82, 99 * KIB, 100 * KIB, threads_per_sm=1536, blocks_per_sm=16, l2_bytes=6 << 20
)
_ORIN = replace(  # Jetson AGX Orin
    _AMPERE, chip="sm_87", sms=16, threads_per_sm=1536, blocks_per_sm=16, l2_bytes=4 << 20
)
_TEGRA = replace(_CONSUMER, chip="sm_88", ptx=90, sms=16, l2_bytes=4 << 20)  # no part is published: Orin's SMs and L2
_ADA = replace(  # RTX 4090
    _CONSUMER, chip="sm_89", ptx=81, sms=128, blocks_per_sm=24, l2_bytes=72 << 20, has_float8_conversions=True
)
_HOPPER = Target(  # H100
    "sm_90",
    81,
    132,
    227 * KIB,
    228 * KIB,
    l2_bytes=50 << 20,
    portable_cluster=8,
    has_float8_conversions=True,
    has_tma=True,
    has_dependent_launch=True,
    has_vector_reductions=True,
)
_BLACKWELL = replace(  # B200
    _HOPPER, chip="sm_100", ptx=86, sms=148, l2_bytes=126 << 20, has_packed_float32=True
)
_ULTRA = replace(_BLACKWELL, chip="sm_103", ptx=88)  # B300
_THOR = replace(  # Jetson AGX Thor
    _BLACKWELL, chip="sm_110", ptx=90, sms=20, threads_per_sm=1536, blocks_per_sm=24, l2_bytes=32 << 20
)
_WORKSTATION = replace(  # RTX PRO 6000 Blackwell
    _HOPPER,
    chip="sm_120",
    ptx=87,
    sms=188,
    shared_per_block=99 * KIB,
    shared_per_sm=100 * KIB,
    threads_per_sm=1536,
    blocks_per_sm=24,
    l2_bytes=128 << 20,
    has_packed_float32=True,
)
_SPARK = replace(_WORKSTATION, chip="sm_121", ptx=88, sms=48, l2_bytes=24 << 20)  # GB10


def _specific(base: Target, **has: bool) -> Target:
    """The architecture-specific variant (`sm_90a`) of an architecture, with instructions that the base lacks."""
    return replace(base, chip=f"{base.chip}a", has_setmaxnreg=True, **has)


TARGETS = {
    target.chip: target
    for target in (
        _AMPERE,
        _CONSUMER,
        _ORIN,
        _TEGRA,
        _ADA,
        _HOPPER,
        _specific(_HOPPER, has_wgmma=True),
        _BLACKWELL,
        _specific(_BLACKWELL, has_tcgen05=True),
        _ULTRA,
        _specific(_ULTRA, has_tcgen05=True),
        _THOR,
        _specific(_THOR, has_tcgen05=True),
        _WORKSTATION,
        _specific(_WORKSTATION),
        _SPARK,
        _specific(_SPARK),
    )
}
"""By name, every architecture from compute capability 8.0 on that LLVM 22 and ptxas 13 know. Names with an `a` have the
architecture's own instructions as well, and their code runs on no other."""

DEFAULT = "sm_90a"

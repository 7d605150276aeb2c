"""What the compiler knows about a GPU architecture.

Limits are those of the CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications";
`sms` is the SM count of the part the architecture is best known by, which the heuristics use when no
device is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlirfuse.errors import TargetError

KIB = 1024

SECTOR, LINE = 32, 128
"""Bytes that memory moves at least, and of a cache line, which are the same on all that are known here (CUDA C++
Programming Guide, device memory accesses)."""


@dataclass(frozen=True)
class Target:
    """An architecture and the limits that schedules must respect.

    Attributes:
        chip: ptxas's name, such as `sm_90a`.
        ptx: PTX version times ten that LLVM is asked to emit.
        sms: number of SMs.
        shared_per_block: most shared memory one block may use, bytes (with the dynamic opt-in).
        shared_per_sm: shared memory of one SM, bytes.
        registers_per_sm: 32-bit registers of one SM.
        threads_per_sm: resident threads of one SM.
        blocks_per_sm: resident blocks of one SM.
        l2_bytes: size of the L2 cache.
        portable_cluster: largest portable thread-block cluster of the architecture; 1 where there are none.
    """

    chip: str
    ptx: int
    sms: int
    shared_per_block: int
    shared_per_sm: int
    registers_per_sm: int = 65536
    threads_per_sm: int = 2048
    blocks_per_sm: int = 32
    l2_bytes: int = 40 << 20
    portable_cluster: int = 1

    max_threads_per_block: int = 1024
    max_registers_per_thread: int = 255

    @property
    def max_cluster(self) -> int:
        """Blocks of the largest cluster that the device holds: a part of one may have few SMs."""
        return min(self.portable_cluster, 1 << (self.sms.bit_length() - 1))

    @property
    def capability(self) -> int:
        """Compute capability times ten: 80, 90, 100, 121."""
        return int("".join(c for c in self.chip if c.isdigit()))

    @property
    def is_specific(self) -> bool:
        """Whether its code runs on devices of this compute capability alone."""
        return not self.chip[-1].isdigit()

    def with_sms(self, sms: int) -> Target:
        """The same architecture with another SM count; raises `TargetError` for less than one."""
        if sms < 1:
            raise TargetError(f"{sms} SMs of {self.chip} run no block", hint="1 or more")
        return replace(self, sms=sms)


_AMPERE = Target("sm_80", 74, 108, 163 * KIB, 164 * KIB)  # A100
_CONSUMER = Target(  # RTX 3090
    "sm_86", 74, 82, 99 * KIB, 100 * KIB, threads_per_sm=1536, blocks_per_sm=16, l2_bytes=6 << 20
)
_ORIN = replace(
    _AMPERE, chip="sm_87", sms=16, threads_per_sm=1536, blocks_per_sm=16, l2_bytes=4 << 20
)  # Jetson AGX Orin
_ADA = replace(_CONSUMER, chip="sm_89", ptx=81, sms=128, blocks_per_sm=24, l2_bytes=72 << 20)  # RTX 4090
_HOPPER = Target("sm_90", 81, 132, 227 * KIB, 228 * KIB, l2_bytes=50 << 20, portable_cluster=8)  # H100
_BLACKWELL = replace(_HOPPER, chip="sm_100", ptx=86, sms=148, l2_bytes=126 << 20)  # B200
_THOR = replace(
    _BLACKWELL, chip="sm_110", ptx=90, sms=20, threads_per_sm=1536, blocks_per_sm=24, l2_bytes=32 << 20
)  # Jetson AGX Thor
_WORKSTATION = replace(  # RTX PRO 6000 Blackwell
    _CONSUMER, chip="sm_120", ptx=87, sms=188, blocks_per_sm=24, l2_bytes=96 << 20, portable_cluster=8
)
_SPARK = replace(_WORKSTATION, chip="sm_121", ptx=88, sms=48, l2_bytes=24 << 20)  # GB10

TARGETS = {
    t.chip: t
    for t in (
        _AMPERE,
        _CONSUMER,
        _ORIN,
        _ADA,
        _HOPPER,
        replace(_HOPPER, chip="sm_90a"),
        _BLACKWELL,
        replace(_BLACKWELL, chip="sm_100a"),
        replace(_BLACKWELL, chip="sm_103", ptx=88),  # B300
        replace(_BLACKWELL, chip="sm_103a", ptx=88),
        _THOR,
        replace(_THOR, chip="sm_110a"),
        _WORKSTATION,
        replace(_WORKSTATION, chip="sm_120a"),
        _SPARK,
        replace(_SPARK, chip="sm_121a"),
    )
}
"""By name, every architecture from compute capability 8.0 on that LLVM 22 and ptxas 13 know. Names with an `a` have the
architecture's own instructions as well, and their code runs on no other."""

DEFAULT = "sm_90a"


def target_of(target: str | Target | None, sms: int = 0) -> Target:
    """The target of that name (`DEFAULT` for None), or the one that is given.

    Args:
        target: the name, or a target, the number of whose SMs may differ from the known one's.
        sms: how many SMs it is to have; 0 for as many as it has.

    Raises:
        TargetError: it is not known, or has no SM.
    """
    name = DEFAULT if target is None else target.chip if isinstance(target, Target) else target
    known = TARGETS.get(name) if isinstance(name, str) else None
    if known is None:
        raise TargetError(f"unknown target {name!r}", hint=f"known targets: {', '.join(TARGETS)}")
    if isinstance(target, Target) and target.with_sms(known.sms) != known:
        raise TargetError(f"{target} is not {known.chip} as mlirfuse knows it", hint="only with_sms changes a target")
    found = target if isinstance(target, Target) else known
    return found.with_sms(sms) if sms else found

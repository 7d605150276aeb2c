"""What the compiler knows of a GPU architecture: its limits, and which instructions it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlirfuse.errors import TargetError


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
        has_float8_conversions: `cvt` from and to float8.
        has_tma: bulk and tensor copies, bulk prefetches, and mbarriers that count their bytes.
        has_dependent_launch: programmatic dependent launch (`griddepcontrol`).
        has_vector_reductions: `red` of two and four floats at once.
        has_packed_float32: `fma`, `add` and `mul` of two floats at once, in a pair of registers.
        has_setmaxnreg: `setmaxnreg`, which moves registers between warpgroups.
        has_wgmma: products of warpgroups, Hopper's `wgmma`.
        has_tcgen05: products in tensor memory, Blackwell's `tcgen05`; mlirfuse has no instruction family for it yet.
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

    has_float8_conversions: bool = False
    has_tma: bool = False
    has_dependent_launch: bool = False
    has_vector_reductions: bool = False
    has_packed_float32: bool = False
    has_setmaxnreg: bool = False
    has_wgmma: bool = False
    has_tcgen05: bool = False

    max_threads_per_block: int = 1024
    max_registers_per_thread: int = 255

    @property
    def max_cluster(self) -> int:
        """Blocks of the largest cluster that fits the SMs, of which a partition of a device (MIG) may have few."""
        return min(self.portable_cluster, 1 << (self.sms.bit_length() - 1))

    @property
    def has_clusters(self) -> bool:
        """Whether blocks of a cluster share their memory."""
        return self.portable_cluster > 1

    @property
    def capability(self) -> int:
        """Compute capability times ten: 80, 90, 100, 121."""
        return int("".join(c for c in self.chip if c.isdigit()))

    @property
    def architecture(self) -> str:
        """The chip's name without instructions of its own: devices of sm_90 and sm_90a are the same."""
        return self.chip.rstrip("a")

    @property
    def is_specific(self) -> bool:
        """Whether its code runs on devices of this compute capability alone."""
        return not self.chip[-1].isdigit()

    def with_sms(self, sms: int) -> Target:
        """The same architecture with another SM count; raises `TargetError` for less than one."""
        if sms < 1:
            raise TargetError(f"{sms} SMs of {self.chip}: a target needs at least one", hint="give 1 or more")
        return replace(self, sms=sms)

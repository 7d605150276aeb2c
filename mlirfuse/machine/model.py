"""`MachineModel`: the speeds of one GPU as named quantities, each with its unit, its range and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mlirfuse.target import target_of

UNITS = {
    "B/s": "bytes a second",
    "B": "bytes",
    "s": "seconds",
    "Hz": "cycles a second",
    "op/s": "operations of single threads a second",
    "flop/s": "multiplications and additions a second",
    "SM": "SMs",
}
"""The units of quantities."""


@dataclass(frozen=True)
class Quantity:
    """What a field of a `MachineModel` means.

    Attributes:
        name: the field's.
        unit: one of `UNITS`.
        meaning: one line for the reader.
        low: the least value that can be true.
        high: the largest.
        scope: whether it is of the `device`, so that it grows with the SMs, or of one `sm`, a rate that grows with the
            clock, or is `fixed`, as latencies and costs are.
        is_optional: whether it is 0 on a device that has no such thing.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float
    scope: str
    is_optional: bool


def _quantity(unit: str, low: float, high: float, scope: str, meaning: str, optional: bool = False) -> Any:
    metadata = {"unit": unit, "low": low, "high": high, "scope": scope, "meaning": meaning, "is_optional": optional}
    return field(metadata=metadata)


def _device(meaning: str) -> Any:
    """Bandwidth of the whole device."""
    return _quantity("B/s", 1e10, 1e15, "device", meaning)


def _of_sm(meaning: str, optional: bool = False) -> Any:
    """Bandwidth of one SM, in bytes a second."""
    return _quantity("B/s", 1e9, 1e13, "sm", meaning, optional)


def _threads(meaning: str, optional: bool = False) -> Any:
    """Rate of one SM, in operations of single threads."""
    return _quantity("op/s", 1e8, 1e13, "sm", meaning, optional)


def _products(meaning: str, optional: bool = True) -> Any:
    """Rate of one SM's tensor cores."""
    return _quantity("flop/s", 1e9, 1e15, "sm", meaning, optional)


def _seconds(meaning: str, optional: bool = False, low: float = 1e-9, high: float = 1e-4) -> Any:
    """A latency or a cost."""
    return _quantity("s", low, high, "fixed", meaning, optional)


@dataclass(frozen=True)
class MachineModel:
    """Speeds of one GPU: bandwidths, rates, latencies and costs, in SI units; 0 for what the device does not have.

    Attributes:
        name: the device's, as CUDA reports it.
        chip: the target that code for it is compiled for, such as `sm_90a`.
        sms: SMs.
        sources: by field, where its value is from: `measured 2026-11-23 NVIDIA H200`, `data sheet`, `scaled from ...`.

    The other fields are quantities; `quantities()` has the unit, the range and the meaning of each.
    """

    name: str
    chip: str
    sms: int

    clock: float = _quantity("Hz", 2e8, 5e9, "fixed", "SM clock while kernels run")

    dram_bandwidth: float = _device("device memory, read and written together, by a large copy")
    dram_read_bandwidth: float = _device("device memory, by a kernel that only reads")
    dram_write_bandwidth: float = _device("device memory, by a kernel that only writes")
    dram_bandwidth_per_sm: float = _of_sm("device memory, by one SM alone")
    dram_latency: float = _seconds("a load from device memory, nothing else in flight")
    dram_loaded_latency: float = _seconds("a load from device memory while all SMs keep it busy")

    l2_bytes: float = _quantity("B", 1 << 18, 1 << 30, "device", "size of the L2 cache")
    l2_read_bandwidth: float = _device("L2, by loads of all SMs that hit")
    l2_write_bandwidth: float = _device("L2, by stores of all SMs that hit")
    l2_bandwidth_per_sm: float = _of_sm("L2, by loads of one SM alone that hit")
    l2_latency: float = _seconds("a load that hits the L2, nothing else in flight")
    l2_loaded_latency: float = _seconds("a load that hits the L2 while all SMs keep it busy")
    cp_async_bandwidth_per_sm: float = _of_sm("L2 to shared memory of one SM by `cp.async` of 16 bytes, one SM alone")
    tma_line_bandwidth_per_sm: float = _of_sm(
        "L2 to one SM by tensor maps, one SM alone, box rows of whole cache lines", True
    )
    tma_sector_bandwidth_per_sm: float = _of_sm(
        "the same, box rows of whole sectors, most of which lie in two lines", True
    )
    tma_unaligned_bandwidth_per_sm: float = _of_sm(
        "the same, box rows every second of which begins inside of a sector", True
    )

    l1_bandwidth_per_sm: float = _of_sm("L1 cache, by loads that hit")
    l1_latency: float = _seconds("a load that hits the L1")
    shared_bandwidth_per_sm: float = _of_sm("shared memory, by loads without bank conflicts")
    shared_latency: float = _seconds("a load from shared memory")
    dsmem_bandwidth_per_sm: float = _of_sm("shared memory of another SM of the cluster, by loads of all SMs", True)
    dsmem_latency: float = _seconds("a load from shared memory of another SM of the cluster", True)

    issue_per_sm: float = _threads("instructions of any kind")
    load_store_per_sm: float = _threads("loads and stores of 4 bytes that hit the L1")
    shuffle_per_sm: float = _threads("shuffles of a warp")
    f32_fma_per_sm: float = _threads("multiply-adds, additions or products of f32")
    f16_fma_per_sm: float = _threads("multiply-adds of f16, in pairs; elements count")
    f64_fma_per_sm: float = _threads("multiply-adds of f64")
    int32_per_sm: float = _threads("additions, shifts and logic of 32-bit integers")
    int32_multiply_per_sm: float = _threads("multiply-adds of 32-bit integers")
    compare_per_sm: float = _threads("minimum, maximum, comparison and selection of f32")
    special_per_sm: float = _threads("special functions of f32: ex2, lg2, rcp, rsqrt, sin, tanh")
    divide_per_sm: float = _threads("correctly rounded divisions of f32")
    convert_per_sm: float = _threads("conversions from f32 to f16 or bf16, in pairs; elements count")
    convert_f8_per_sm: float = _threads("conversions from f32 to float8, in pairs; elements count", True)
    convert_int_per_sm: float = _threads("conversions between f32 and 32-bit integers")

    mma_16bit_per_sm: float = _products("`mma.sync` of f16 or bf16, sums in f32", False)
    mma_tf32_per_sm: float = _products("`mma.sync` of tf32", False)
    mma_f8_per_sm: float = _products("`mma.sync` of float8")
    mma_int8_per_sm: float = _products("`mma.sync` of int8", False)
    mma_f64_per_sm: float = _products("`mma.sync` of f64")
    wgmma_16bit_per_sm: float = _products("`wgmma` of f16 or bf16, sums in f32")
    wgmma_tf32_per_sm: float = _products("`wgmma` of tf32")
    wgmma_f8_per_sm: float = _products("`wgmma` of float8")
    wgmma_int8_per_sm: float = _products("`wgmma` of int8")

    graph_launch: float = _seconds("of each kernel after the first in a replayed graph, empty and in order")
    stream_launch: float = _seconds("of each kernel in a stream, empty and in order")
    dependent_launch: float = _seconds("the same in a replayed graph by programmatic dependent launch", True)
    block_launch: float = _seconds("from the end of a block to the first instruction of the next one on its SM")
    block_start: float = _seconds("of each further block of a grid of small blocks", low=1e-11)
    cluster_start: float = _seconds("the same of each block in clusters of 4", True, low=1e-11)
    block_barrier: float = _seconds("a barrier of a block of 256 threads")
    cluster_launch: float = _seconds("more that a launch takes in clusters", True)
    cluster_barrier: float = _seconds("a barrier of a cluster of 4 blocks", True)
    grid_barrier: float = _seconds("a barrier of a resident grid of one block an SM")
    message_latency: float = _seconds("from a release of a flag in device memory until another SM has acquired it")
    atomic_latency: float = _seconds("an atomic addition to device memory that hits the L2, with its result")
    atomics_per_address: float = _quantity("op/s", 1e6, 1e12, "fixed", "atomic additions to one address, all SMs")
    atomics: float = _quantity("op/s", 1e8, 1e14, "device", "atomic additions of f32 to distinct addresses in the L2")

    cluster_sms_4: float = _quantity("SM", 4, 1024, "device", "SMs that hold a block in clusters of 4", True)
    cluster_sms_8: float = _quantity("SM", 8, 1024, "device", "the same in clusters of 8", True)

    sources: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False)

    @property
    def architecture(self) -> str:
        """Its chip without instructions of its own: `sm_90` of `sm_90a`."""
        return target_of(self.chip).architecture

    def sms_with(self, cluster: int) -> int:
        """SMs that hold blocks of clusters of so many: a part of the device may hold no whole cluster."""
        return int({4: self.cluster_sms_4, 8: self.cluster_sms_8}.get(cluster, 0.0)) or self.sms

    @property
    def next_launch(self) -> float:
        """Seconds of each kernel after the first in a replayed graph, as mlirfuse launches it."""
        return self.dependent_launch or self.graph_launch

    @property
    def dram_bytes_in_flight(self) -> float:
        """Bytes of loads in flight on each SM that keep device memory busy."""
        return self.dram_bandwidth * self.dram_loaded_latency / self.sms

    @property
    def l2_bytes_in_flight(self) -> float:
        """Bytes of loads in flight on each SM that keep the L2 busy."""
        return self.l2_read_bandwidth * self.l2_loaded_latency / self.sms


def quantities() -> Iterator[Quantity]:
    """The quantities of a `MachineModel`, in order."""
    for member in fields(MachineModel):
        if "unit" in member.metadata:
            yield Quantity(member.name, **member.metadata)


QUANTITIES = {quantity.name: quantity for quantity in quantities()}
"""The same by name."""

"""Instruction families that multiply tiles: their registration, and what is a number or a flag of each.

One entry of `FAMILIES` registers a family. What a family does differently in a layer is a module of its name in that
layer's package `families` (`support/strategies.py`): its schedules in `schedule/contractions`, how it multiplies the
stages of a pipelined loop in `tiling/contractions`, and one thread's products in `distribution/mma`. No other code
compares names of families (`docs/targets.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mlirfuse.target.architecture import Target


@dataclass(frozen=True)
class InstructionFamily:
    """Properties of an instruction family.

    Attributes:
        name: as `ContractionSchedule.instruction` and `fuse.instruction` have it.
        exists_on: whether an architecture has it.
        is_tensor_core: whether tensor cores multiply; else threads do, by scalar multiply-adds on any type.
        is_asynchronous: whether warpgroups multiply operands in shared memory that tensor maps filled, while a producer
            copies the next; grids of such kernels may be persistent and in clusters.
        producer_threads: threads of a block beside those that hold accumulators.
        takes_transposed: whether operands may be transposed on their way to shared memory.
        flops_per_sm: multiply and add operations of 16-bit operands that an SM does a second, by which the fastest
            family that multiplies a problem is chosen; 0 for the family that is chosen last.
        fallback: the family that takes over where this one cannot multiply a tile, with the same accumulators.
        lowerings: names of the passes that lower the family's ops, in order.
        tf32_ties: where f32 operands that lie halfway between two tf32 numbers go: `even` or `away`.
    """

    name: str
    exists_on: Callable[[Target], bool]
    is_tensor_core: bool = True
    is_asynchronous: bool = False
    producer_threads: int = 0
    takes_transposed: bool = False
    flops_per_sm: float = 0.0
    fallback: str | None = None
    lowerings: tuple[str, ...] = ()
    tf32_ties: Literal["even", "away"] = "away"


SIMT = InstructionFamily("fma", lambda _: True, is_tensor_core=False, takes_transposed=True)
MMA_SYNC = InstructionFamily("mma", lambda _: True, flops_per_sm=3.8e12, lowerings=("lower-mma",))
WGMMA = InstructionFamily(
    "wgmma",
    lambda target: target.has_wgmma,
    is_asynchronous=True,
    producer_threads=128,
    flops_per_sm=5.9e12,
    fallback=MMA_SYNC.name,
    lowerings=("lower-warpgroup-mma",),
    tf32_ties="even",
)

FAMILIES = {family.name: family for family in (SIMT, MMA_SYNC, WGMMA)}
"""By name: scalar multiply-adds, `mma.sync`, and `wgmma`."""

DEFAULT_FAMILY = SIMT.name
"""The family of a contraction of tiles that names none."""

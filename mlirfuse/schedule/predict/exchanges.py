"""What warps and blocks exchange in reductions: bytes of shared memory, steps over lanes, barriers."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import RowReduction


@dataclass(frozen=True)
class Exchange:
    """Of all threads of one block, once.

    Attributes:
        shared: bytes through shared memory.
        dsmem: bytes from other blocks' shared memory.
        shuffles: steps over lanes, of threads.
        meets: whether warps meet.
        joins: whether blocks do.
    """

    shared: float = 0.0
    dsmem: float = 0.0
    shuffles: float = 0.0
    meets: bool = False
    joins: bool = False

    def __add__(self, other: Exchange) -> Exchange:
        return Exchange(
            self.shared + other.shared,
            self.dsmem + other.dsmem,
            self.shuffles + other.shuffles,
            self.meets or other.meets,
            self.joins or other.joins,
        )


NONE = Exchange()


def exchange(part: RowReduction, layout: BlockedLayout) -> Exchange:
    """What a block's threads exchange of one reduction.

    Every warp writes a number for each result, and reads what all warps along the reduced dimensions wrote; so do
    blocks.
    """
    kept = prod(layout.vector[d] * layout.repeats[d] for d in part.kept)
    lanes, warps, blocks = (prod(n[d] for d in part.dims) for n in (layout.lanes, layout.warps, layout.blocks))
    results = layout.threads * kept / lanes * part.bytes
    return Exchange(
        results * (warps + 1) if warps > 1 else 0.0,
        results * blocks if blocks > 1 else 0.0,
        layout.threads * kept * log2(lanes) if lanes > 1 else 0.0,
        warps > 1,
        blocks > 1,
    )

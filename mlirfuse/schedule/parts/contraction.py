"""The part of a schedule that a contraction adds: how its k-loop runs, and on which instructions."""

from __future__ import annotations

from dataclasses import dataclass

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.renamed_names import refuses_old_fields
from mlirfuse.target.instructions import FAMILIES, InstructionFamily

REDUCTIONS = ("serial", "last_block", "grid_sync", "cluster", "flagged")
"""How the partials of a split are combined: added one after another in order (`serial`); all by the last block; or by
all blocks, a slice of the tile's rows each, behind a grid barrier (`grid_sync`), in the shared memory of a cluster, or
by a flag-in-data exchange (`flagged`). `grid_sync` and `flagged` need all blocks resident at once. All are
deterministic."""

SLICED = ("grid_sync", "cluster", "flagged")
"""The reductions in which every block adds up some rows, with a `second_stage_layout`."""

WHOLE = ("grid_sync", "flagged")
"""The reductions for which the grid must be resident as a whole."""

LONGEST_SUM = 2048
"""Elements of k that an accumulator of a tensor core sums up where errors show, if registers allow: each instruction
cuts off what does not fit the accumulator."""

MAX_CONSUMER_GROUPS = 2
"""Ping-pong consumer groups of a block, at most: one warpgroup each, with registers for tiles that are worth it."""


@refuses_old_fields
@dataclass(frozen=True)
class ContractionSchedule:
    """How the k-loop of a contraction runs.

    Attributes:
        k: elements of the contracted dimension in one step.
        instruction: name of the instruction family that multiplies, a key of `target.instructions.FAMILIES`.
        stages: slots of the shared-memory ring that the operands pass through.
        split: blocks that share the contracted dimension of one tile.
        tail: how many tiles, the last ones, have such a split: those of a wave that would leave most SMs idle, as in
            hybrid Stream-K (Osama et al., 2023); 0 for all. With the reduction `last_block`, whose blocks wait for
            nothing.
        reduction: one of `REDUCTIONS`; without a split it means nothing.
        second_stage_layout: where blocks add up slices of rows (`SLICED`), how a slice is spread over threads.
        persistent: whether a grid of as many blocks as the device holds loops over the tiles, of which the next one's
            operands are copied while a tile's epilogue runs; with `wgmma` only.
        raster: rows of tiles that blocks go through together, a column of them after the other. Tiles that are worked
            on at the same time then read fewer different parts of the operands than a whole row of tiles does.
        cluster: blocks of a cluster, whose tiles are neighbours along n, in a persistent grid too: each copies a part
            of the operand that they have in common to all of them; with `wgmma` only.
        streamed: whether operands are the first to leave the L2, for what stays in it to stay; with `wgmma` only.
        promote: steps along k after which sums leave the tensor cores' accumulators, which cut them off, and are added
            up in registers of their own; 0 is never; with `wgmma` only.
        consumer_groups: ping-pong consumer groups, which alternate over a block's tiles, each of one warpgroup: while
            one's products run, the other runs its epilogue; with a persistent grid only.
        swapped: whether the result's tile is transposed: its rows are operand B's, its columns operand A's.
        transposed_operands: whether operands in which k is contiguous are transposed on their way to shared memory, for
            threads to load a step's rows (or columns) as vectors; with `fma` only.
        argument_stages: whether the ring leaves room for all tiles that the epilogue reads: results have as many stages
            as subtiles, through which a tile of their type comes, and others have stages of their own; with `wgmma`
            only.
    """

    k: int
    instruction: str
    stages: int = 2
    split: int = 1
    tail: int = 0
    reduction: str = "last_block"
    second_stage_layout: BlockedLayout | None = None
    persistent: bool = False
    raster: int = 1
    cluster: int = 1
    streamed: bool = False
    promote: int = 0
    consumer_groups: int = 1
    swapped: bool = False
    transposed_operands: bool = False
    argument_stages: bool = False

    @property
    def tile_split(self) -> int:
        """Blocks that share a tile, where that is so for all tiles."""
        return 1 if self.tail else self.split

    @property
    def split_text(self) -> str:
        """How blocks share tiles, in words; empty where they do not."""
        if self.split == 1:
            return ""
        return f"split {self.split} {self.reduction}" + (f" of the last {self.tail} tiles" if self.tail else "")

    @property
    def family(self) -> InstructionFamily:
        """The instruction family; `KeyError` where there is none of that name, which `check_schedule` refuses."""
        return FAMILIES[self.instruction]

    def slice_rows(self, rows: int) -> int:
        """Rows of a tile of `rows` that one block of a split adds up: the fewest that divide it and leave none over."""
        active = 1 << (min(self.split, rows).bit_length() - 1)
        return -(-rows // active)

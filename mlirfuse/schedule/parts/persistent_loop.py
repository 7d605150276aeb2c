"""How a persistent loop runs over a dimension that is reduced, and how its partials are combined."""

from __future__ import annotations

from dataclasses import dataclass

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.renamed_names import not_one_of, refuses_old_fields

GRID_REDUCTIONS = {
    "grid_sync": "all blocks",
    "last_block": "the last block",
    "second_kernel": "a second kernel",
    "atomics": "atomic additions and the last block",
}
"""Who adds up the blocks' partials.

- `grid_sync`: all blocks, a slice of the columns each, once all have arrived. The grid must be resident as a whole, and
  is launched so.
- `last_block`: the last block; no block waits.
- `second_kernel`: another kernel, behind the persistent loop in the stream; there are no semaphores.
- `atomics`: blocks add their partials to `SUM_ROWS` rows of sums as they come, and the last block adds these
  up. Sums of f32 only.

All but `atomics` add in the order of blocks, so that results are the same bits on every run; `atomics` is never chosen
unasked.
"""

SUM_ROWS = 8
"""Rows of sums for atomic additions: block b adds to row b % SUM_ROWS, so that few blocks contend for an address, and a
sum of all partials in any order loses less."""

COLUMNS = ("registers", "shared")
"""Where a block keeps what all its tiles share, such as weights."""

ROW_VALUES = ("registers", "shared")
"""Where a block keeps what varies along the looped dimensions only, such as a row's mean, until its tile is worked on.
"""

MOST_STAGES, MOST_READS = 16, 256
"""Tiles of a block that may be under way at once, and of partial results: more than there is room for on chip."""


@refuses_old_fields
@dataclass(frozen=True)
class PersistentLoop:
    """A loop of resident blocks over the tiles of some dimensions.

    Attributes:
        dims: the looped dimensions; block b takes tiles b, b + blocks, b + 2 blocks, ...; see `consecutive`.
        grid_reduction: one of `GRID_REDUCTIONS`.
        second_stage_tile: extents of the tiles in which partials are added up: blocks along the first of `dims`,
            1 along its others, and a slice of the dimensions that are kept.
        second_stage_layout: how such a tile is spread over the threads of a block.
        stages: tiles of a block that are under way at once; more than 1 loads them into shared memory by asynchronous
            copies.
        columns: one of `COLUMNS`; in shared memory only with more than one stage, and with one row a tile, so that each
            thread reads back what it wrote.
        second_stage_reads: tiles of partials that are read before any is added, so that one latency covers them all.
        blocks: blocks of the grid, for `second_kernel`, where the host has to know how many partials there are; 0 for
            as many as are resident.
        period: tiles of a block after which it stores a partial, and starts a new one; 0 for one partial a block. Sums
            of few numbers, added up as partials, lose less than a long one. For `second_kernel`, which takes one
            partial a block, it adds them up itself, with what additions lose. Not for `atomics`.
        peeled: whether a block's last tile is worked on behind the loop, where the partial leaves before the tile's
            rows are reduced. Not with a period.
        few_tiles: tiles of a block up to which only the next one is loaded while one is in work, whatever `stages` is:
            tiles that are loaded together arrive together, and leave their work for the end. 0 for no such limit.
        row_values: one of `ROW_VALUES`: loaded into registers one step ahead, or copied to shared memory with the tile.
        streamed: whether a step decides if the loop reads little enough for its tiles to leave the L2 first.
        consecutive: whether a block takes tiles that follow each other in place of every so many, so that the L1 has
            what their windows have in common. With one stage, and not peeled.
        slices: slices of the dimension of threads' vectors, of which a tile has one: block b has slice b % slices, and
            shares the tiles of the looped dimensions with the other blocks of its slice. Blocks so hold accumulators of
            a slice alone. For `second_kernel`, one stage, not peeled, with a multiple of them as `blocks`.
    """

    dims: tuple[int, ...]
    grid_reduction: str
    second_stage_tile: tuple[int, ...]
    second_stage_layout: BlockedLayout
    stages: int = 1
    columns: str = "registers"
    second_stage_reads: int = 1
    period: int = 0
    blocks: int = 0
    peeled: bool = False
    few_tiles: int = 0
    row_values: str = "registers"
    streamed: bool = False
    consecutive: bool = False
    slices: int = 1

    @property
    def has_second_kernel(self) -> bool:
        """Whether a kernel of its own adds up the partials."""
        return self.grid_reduction == "second_kernel"

    @property
    def compensates(self) -> bool:
        """Whether a block adds up its periods' sums itself, with what additions lose."""
        return self.period > 0 and self.has_second_kernel

    @property
    def sharing(self) -> int:
        """Blocks that share the tiles of a slice, for `second_kernel`; each leaves a partial of the slice."""
        return self.blocks // self.slices

    def check(self, layout: BlockedLayout) -> str | None:
        """What makes this persistent loop illegal for tiles of that layout, or None."""
        if self.grid_reduction not in GRID_REDUCTIONS:
            return not_one_of("grid_reduction", self.grid_reduction, GRID_REDUCTIONS)
        if self.columns not in COLUMNS:
            return not_one_of("columns", self.columns, COLUMNS)
        if self.columns == "shared" and (self.stages == 1 or any(layout.extents[d] > 1 for d in self.dims)):
            return "columns go to shared memory with more than one stage and one row a tile only"
        if self.row_values not in ROW_VALUES:
            return not_one_of("row_values", self.row_values, ROW_VALUES)
        if self.row_values == "shared" and self.stages == 1:
            return "row values go to shared memory with more than one stage only"
        if self.streamed and self.stages == 1:
            return "only tiles that are copied, with more than one stage, can leave the L2 first"
        if not 1 <= self.stages <= MOST_STAGES:
            return f"{self.stages} stages are not 1 to {MOST_STAGES}"
        if self.few_tiles < 0:
            return f"{self.few_tiles} tiles: few_tiles must be at least 0"
        if self.has_second_kernel != (self.blocks > 0):
            return (
                f"{self.blocks} blocks at most: a second kernel needs their number, the others take as many as are "
                f"resident"
            )
        if self.grid_reduction == "atomics" and self.period:
            return f"grid_reduction {self.grid_reduction!r} takes one partial a block, without a period"
        if self.peeled and self.period:
            return "a peeled loop stores one partial a block, without a period"
        if self.consecutive and (self.stages > 1 or self.peeled):
            return "a block takes consecutive tiles with one stage and no peeled loop only"
        if self.slices < 1:
            return f"{self.slices} slices: there must be 1 at least"
        if self.slices > 1 and (not self.has_second_kernel or self.stages > 1 or self.peeled):
            return "blocks have slices with grid_reduction second_kernel, one stage, and no peeled loop only"
        if self.blocks % self.slices:
            return f"{self.blocks} blocks are no multiple of {self.slices} slices"
        if self.slices > 1 and layout.cluster > 1:
            return "a cluster has whole tiles, and no slices"
        if self.period < 0:
            return f"a partial every {self.period} tiles: period must be at least 0"
        if not 1 <= self.second_stage_reads <= MOST_READS:
            return f"a second stage reads 1 to {MOST_READS} tiles at once, not {self.second_stage_reads}"
        if problem := self.second_stage_layout.check(self.second_stage_tile):
            return f"second stage: {problem}"
        if self.second_stage_layout.threads != layout.threads or self.second_stage_layout.cluster != layout.cluster:
            second_stage, persistent_loop = self.second_stage_layout, layout
            return (
                f"the second stage has {second_stage.threads} threads in {second_stage.cluster} block(s), the "
                f"persistent loop {persistent_loop.threads} in "
                f"{persistent_loop.cluster}"
            )
        if any(self.second_stage_layout.blocks[d] > 1 for d in self.dims):
            return "the second stage may split a slice over a cluster, not the blocks whose partials it combines"
        return None

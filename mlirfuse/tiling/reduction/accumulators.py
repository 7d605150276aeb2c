"""What a block's threads carry of a reduction from tile to tile of a persistent loop, and how a tile is added to it."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of, joins_addition
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.thread_reduce import thread_reduce
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter, vector_kind
from mlirfuse.tiling.reduction.reduction_ops import combine, masked, neutral_scalar, neutral_tile
from mlirfuse.tiling.tiles import Shape

FEWEST_ACCUMULATORS = 4
"""Accumulators of a thread, at least, to which it adds all that it has of the reduced dimensions: as many as cycles
from an addition to the next one that needs its result. With fewer, each element of a tile has its own."""


@dataclass(frozen=True)
class Accumulators:
    """The accumulators of a block's reductions over the dimensions of a persistent loop.

    Attributes:
        space: the kernel's iteration space.
        schedule: the tile and its layout.
        looped: the dimensions of the loop.
        reductions: all that the loop has, of tiles and over them.
    """

    space: IterationSpace
    schedule: Schedule
    looped: frozenset[int]
    reductions: tuple[OpStructure, ...]

    def extents(self, s: OpStructure) -> Shape:
        """Extents of the tile that is carried for a reduction."""
        dims = {d for d in self.space.loops[s.op] if d is not None} - self._alone(s)
        shared, layout = self._shared(s), self.schedule.layout
        carried = (layout.threads_along(d) if d in shared else n for d, n in enumerate(self.schedule.tile))
        return tuple(n if d in dims else 1 for d, n in enumerate(carried))

    def add(
        self, s: OpStructure, emitter: TileEmitter, partial: ir.Value, mask: ir.Value | None, *, restarted: bool
    ) -> ir.Value:
        """A reduction's accumulator combined with a tile's elements.

        What a thread has of the reduced dimensions is reduced first, so that it keeps one accumulator for that.
        Products are multiplied and added to it in one instruction each, unless accumulators are restarted after some
        tiles, which keeps sums short.
        """
        alone, shared = self._alone(s), self._shared(s)
        if not alone and not shared:
            return combine(s, partial, emitter.combine_input(s), mask)
        elements = masked(s, emitter.combine_input(s), mask)
        if shared:
            dims, layout = sorted(alone | shared), self.schedule.layout
            start = neutral_tile(s, self.extents(s)) if restarted else partial
            kind = vector_kind(combiner_of(s).name)
            added = thread_reduce(elements, start, dims, [layout.step(d) for d in dims], kind)
            return combine(s, partial, added, None) if restarted else added
        if mask is None and not restarted and joins_addition(combiner_of(s).element):
            return emitter.reduce(s, elements, partial, alone)
        return combine(s, partial, emitter.reduce(s, elements, neutral_scalar(s), alone), None)

    def _alone(self, s: OpStructure) -> frozenset[int]:
        """The reduced dimensions of which one thread holds all of a tile, if that is several elements; or else none."""
        alone = frozenset(d for d in self.space.reduced[s.op] if self.schedule.layout.is_alone([d]))
        return alone if any(self.schedule.tile[d] > 1 for d in alone) else frozenset()

    def _shared(self, s: OpStructure) -> frozenset[int]:
        """The reduced dimensions of which each of several threads holds neighbours of a tile, which it covers exactly.

        Rows that a thread is unrolled over are no neighbours, as those of other threads lie in between. There are none
        where reductions of a loop are over different dimensions, or tiles are loaded ahead, as what a loop carries has
        one layout.
        """
        layout, tile = self.schedule.layout, self.schedule.tile
        if len({self.space.reduced[each.op] for each in self.reductions}) > 1 or self.schedule.loop_part.stages > 1:
            return frozenset()
        looped = self.space.reduced[s.op] & self.looped
        kept = {d for d in self.space.loops[s.op] if d is not None} - self.space.reduced[s.op]
        if layout.held(kept) < FEWEST_ACCUMULATORS:
            return frozenset()
        return frozenset(
            d for d in looped if layout.step(d) > 1 and not layout.is_alone([d]) and tile[d] == layout.extents[d]
        )

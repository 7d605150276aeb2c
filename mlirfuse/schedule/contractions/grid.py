"""Where the blocks of a contraction run, and which bytes they move: tiles, rounds, waves, traffic.

Pure functions of (schedule, problem, machine), in SI units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import TypeVar

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.kept import kept_property
from mlirfuse.target import LINE

T = TypeVar("T")

UNKNOWN_EXTENT = 4096
"""What a dynamic extent is taken to be where the problem has no hint."""

KEPT = 0.5
"""Share of the L2 whose lines are still there when they are read again: its two sides both keep what both have read."""

PARTS_KEPT = 0.9
"""Share of the lines, at most, whose first part is still in the L2 when another tile stores the rest: other kernels'
results leave it meanwhile, and those of this one (`benchmarks/results/thin_products-h200.json`)."""

COUNTED = 1.08
"""Time of steps along k whose number differs from tile to tile, to that of steps of whole tiles, whose number is known
to the compiler (`benchmarks/results/tail_candidates-h200.json`)."""

SHARED_COPY = {1: 1.0, 2: 0.55, 4: 0.45}
"""Time of copying a row that the blocks of a cluster copy for each other, by their number, to that of one that each
block copies for itself."""


def tile_count(schedule: Schedule, problem: ContractionProblem) -> int:
    """Tiles of the result; dynamic extents are as expected, or `UNKNOWN_EXTENT`."""
    return prod(-(-extent // size) for extent, size in zip(extents_of(schedule, problem), schedule.tile, strict=True))


def extents_of(schedule: Schedule, problem: ContractionProblem) -> list[int]:
    """Of the result, in the order of the schedule's tile; dynamic ones are as expected, or `UNKNOWN_EXTENT`."""
    *batch, m, n = problem.expected
    return [extent or UNKNOWN_EXTENT for extent in (*batch, *((n, m) if schedule.contraction_part.swapped else (m, n)))]


def own_products(schedule: Schedule, problem: ContractionProblem) -> tuple[int, int]:
    """For each side of the schedule's tile, the products whose operand is memory of its own: those of the batch
    dimensions that the operand has.
    """
    extents = extents_of(schedule, problem)[:-2]
    first, second = (
        prod(extent for extent, reads in zip(extents, problem.batch_reads_of, strict=True) if reads[number])
        for number in (0, 1)
    )
    return (second, first) if schedule.contraction_part.swapped else (first, second)


def contiguous_bytes(problem: ContractionProblem) -> list[int]:
    """Bytes of a row of each operand, along which its memory is contiguous; of whole lines where that is not known."""
    outer = (problem.m, problem.n)
    extents = [problem.k if k else extent for k, extent in zip(problem.k_contiguous, outer, strict=True)]
    return [(extent or LINE) * problem.element.bytes for extent in extents]


@dataclass(frozen=True)
class ContractionGrid:
    """The blocks of a contraction on a device; sides are in the order of the schedule's tile: rows, then columns.

    Attributes:
        schedule: the schedule.
        problem: the contraction.
        machine: the device.
        resident: blocks that an SM holds at once.
    """

    schedule: Schedule
    problem: ContractionProblem
    machine: MachineModel
    resident: int = 1

    @property
    def contraction(self) -> ContractionSchedule:
        """The schedule's part for contractions."""
        return self.schedule.contraction_part

    @kept_property
    def extents(self) -> list[int]:
        """Those of `extents_of`."""
        return extents_of(self.schedule, self.problem)

    @kept_property
    def batch(self) -> int:
        """Products."""
        return prod(self.extents[:-2])

    @kept_property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        rows, columns = self.extents[-2:]
        return rows, columns

    def swapped(self, first: T, second: T) -> tuple[T, T]:
        """What belongs to the operands A and B, in the order of the tile's sides."""
        return (second, first) if self.contraction.swapped else (first, second)

    @kept_property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        rows, columns = self.schedule.tile[-2:]
        return rows, columns

    @kept_property
    def counts(self) -> tuple[int, int]:
        """Tiles along each side."""
        rows, columns = (ceil(side / tile) for side, tile in zip(self.sides, self.tile, strict=True))
        return rows, columns

    @kept_property
    def tiles(self) -> int:
        """Of all products."""
        return self.batch * prod(self.counts)

    @kept_property
    def blocks(self) -> int:
        """Tiles, times the blocks that share one's steps."""
        shared = self.contraction.tail or self.tiles
        return self.tiles + shared * (self.contraction.split - 1)

    @kept_property
    def sms(self) -> int:
        """SMs that can have a block: clusters do not fill every group of SMs."""
        return self.machine.sms_with(self.contraction.cluster)

    @kept_property
    def busy(self) -> int:
        """SMs that have a block."""
        return min(self.blocks, self.sms)

    @kept_property
    def rounds(self) -> int:
        """Tiles, or parts of a split's, that the busiest SM works on."""
        return ceil(self.blocks / self.sms)

    @kept_property
    def busiest_steps(self) -> float:
        """Steps along k of the busiest SM, in those of whole tiles; of a tail each SM has a part of a tile at most,
        behind its own tiles.
        """
        if not self.contraction.tail:
            return self.rounds * self.steps * self.kept
        return COUNTED * ((self.rounds - 1) * self.steps + ceil(self.steps / self.contraction.split))

    @kept_property
    def kept(self) -> float:
        """Share of the steps that tiles take in the mean, whose columns of operand B end earlier along k for some."""
        columns, share = self.problem.k_ends
        width = self.tile[0] if self.contraction.swapped else self.tile[1]
        return share if columns and columns % width == 0 and self.contraction.split == 1 else 1.0

    @kept_property
    def load(self) -> float:
        """Share of the SMs that work, in the mean over time."""
        idle = self.rounds * self.steps * self.kept / self.busiest_steps
        return (self.tiles if self.contraction.tail else self.blocks) / (self.rounds * self.sms) * idle

    @kept_property
    def turns(self) -> int:
        """The same where those that an SM holds at once count once."""
        return ceil(self.rounds / self.resident)

    @kept_property
    def steps(self) -> int:
        """Steps along k of a block on one tile."""
        return ceil(self.problem.steps(self.contraction.k) / self.contraction.tile_split)

    @kept_property
    def clips(self) -> tuple[bool, bool]:
        """For each side whether rows past its end are not copied (`TileOperand.last_rows`); else zeros are."""
        extents = (self.problem.m, self.problem.n)
        ends = (k and extent is not None for k, extent in zip(self.problem.k_contiguous, extents, strict=True))
        return self.swapped(*ends) if self.contraction.family.is_asynchronous else (False, False)

    @kept_property
    def copied(self) -> tuple[float, float]:
        """Rows, and columns, that a step copies of the operands, in the mean over blocks."""
        sides = zip(self.sides, self.counts, self.tile, self.clips, strict=True)
        rows, columns = (side / count if clips else tile for side, count, tile, clips in sides)
        return rows, columns

    @kept_property
    def filled(self) -> tuple[float, float]:
        """Share of the rows, and columns, of `copied` that the operands have."""
        rows, columns = (
            side / count / copied for side, count, copied in zip(self.sides, self.counts, self.copied, strict=True)
        )
        return rows, columns

    @kept_property
    def element_bytes(self) -> tuple[int, int]:
        """Of an element of each operand in memory; an operand that the kernel computes has those of all its sources."""
        first, second = map(sum, self.source_bytes)
        return first, second

    @kept_property
    def source_bytes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of an element of each array that an operand is read from, or computed from."""
        computed = zip(self.problem.sources, self.problem.computed_from, strict=True)
        first, second = (sources or (stored or self.problem.element.bytes,) for sources, stored in computed)
        return self.swapped(first, second)

    @kept_property
    def step_bytes(self) -> tuple[float, float]:
        """Bytes that a step copies for each side."""
        rows, columns = (n * size * self.contraction.k for n, size in zip(self.copied, self.element_bytes, strict=True))
        return rows, columns

    @kept_property
    def overhanging_boxes(self) -> float:
        """Copies that end past the end of k, of each row of a step, in the mean over steps: one is a swizzle atom."""
        atom = SWIZZLE_BYTES // self.problem.element.bytes
        taken = self.problem.steps(self.contraction.k) * max(1, self.contraction.k // atom)
        whole = self.problem.outer_k * (self.problem.k // atom)
        return (taken - whole) * max(1, self.contraction.k // atom) / taken

    @kept_property
    def wave(self) -> tuple[float, float]:
        """Tiles along each side of those that are worked on at the same time."""
        at_once = min(self.tiles, max(1, self.sms * self.resident // self.contraction.tile_split))
        rows, columns = self.counts
        together = min(self.contraction.raster, rows) if self.contraction.raster > 1 else 1
        across = min(columns, max(1.0, at_once / together))
        down = min(float(rows), max(float(together), at_once / across))
        return down, across

    @kept_property
    def dram_bytes(self) -> float:
        """Operands, as often as the L2 loses them between waves, the result, and what the epilogue reads beside it."""
        lines = [self._once(side) for side in (0, 1)]
        kept = KEPT * self.machine.l2_bytes
        rows, columns = lines
        first, second = self.fetches(lines)
        down, across = self.wave
        # Waves go along the columns of a group of rows, then on to the next group.
        group = rows * down / self.counts[0]
        groups = ceil(self.counts[0] / down)
        rows_read = rows * (1 if group + columns * across / self.counts[1] <= kept else ceil(self.counts[1] / across))
        columns_read = columns * (1 if columns + group <= kept else groups)
        written = prod(self.sides) * (self.problem.work.written + self.problem.work.read) + self._rewritten
        fetched = first * rows_read + second * columns_read
        if self.problem.one_array and (rows <= kept or (down, across) == self.counts):
            fetched -= min(first * rows, second * columns)
        return fetched + self.batch * written

    @kept_property
    def _rewritten(self) -> float:
        """Bytes of one product's result that are moved again: a line of which several tiles store parts may have left
        the L2 in between, and most have where that does not keep the result; it is read and written once more.
        """
        rows, columns = self.sides[::-1] if self.contraction.swapped else self.sides
        count, tile = (each[not self.contraction.swapped] for each in (self.counts, self.tile))
        row_bytes, tile_bytes = (int(n * self.problem.work.written) for n in (columns, tile))
        if not row_bytes:
            return 0.0
        kept = min(PARTS_KEPT, KEPT * self.machine.l2_bytes / (rows * row_bytes))
        return 2 * (1 - kept) * LINE * rows * _parted_lines(row_bytes, tile_bytes, count)

    def _once(self, side: int) -> float:
        """Bytes of an operand of one product that all waves together read once each; windows of an image that one wave
        reads are read from memory once, wherever they overlap.
        """
        size, extent = self.element_bytes[side], self.sides[side]
        whole, window = extent * size * self.problem.summed, self.swapped(*self.problem.windows)[side]
        if window is None:
            return whole
        elements, period, _ = window
        waves = ceil(self.counts[side] / self.wave[side])
        return min(whole, elements * size * min(waves, max(1.0, extent / period)))

    def fetches(self, part_bytes: Sequence[float]) -> tuple[int, int]:
        """For each side, products that fetch a part of the operand anew: where the operand lacks a batch dimension,
        only if the L2 has lost the part since the product before.

        Args:
            part_bytes: of each side's operand in one product.
        """
        counts, touched = [1, 1], list(part_bytes)
        for extent, reads in reversed(list(zip(self.extents[:-2], self.problem.batch_reads_of, strict=True))):
            is_kept = sum(touched) <= KEPT * self.machine.l2_bytes
            for side, has in enumerate(self.swapped(*reads)):
                if has:
                    touched[side] *= extent
                if has or not is_kept:
                    counts[side] *= extent
        return counts[0], counts[1]


def _parted_lines(row_bytes: int, tile_bytes: int, count: int) -> float:
    """Lines of a row of that many tiles that several tiles have parts of, in the mean over rows."""
    shift = gcd(row_bytes, LINE)  # rows begin at all multiples of it in a line
    apart = sum(shift / LINE for n in range(1, count) if n * tile_bytes % shift == 0)
    return min(count - 1 - apart, ceil(row_bytes / LINE))

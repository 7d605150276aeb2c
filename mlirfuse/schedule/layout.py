"""Layouts: which thread holds which element of a tile vector.

A blocked layout splits every dimension of a tile, from the outside in, over the blocks of a cluster, repeats of one
thread, warps, repeats inside a warp, lanes, and the contiguous vector that one thread holds:

    first = ((((block * repeats + repeat) * warps + warp) * inner + i) * lanes + lane) * run
    index = (first + j) * vector + element - shift

The repeats inside a warp are what makes the accumulators of tensor cores a blocked layout: a warp of an m64nNk16
`wgmma` holds 16 neighbouring rows, 8 to a fragment. A run is what a thread has of a dimension in one piece where its
vectors lie along another: of a product, whose operands it then loads as vectors both.

The shift is 0 but where rows are unaligned: rows of an odd number of elements start at addresses of any alignment, and
each is shifted by as much as its first element lies past a multiple of the vector, so that all vectors are aligned.
Rows of whole vectors may be shifted to multiples of more, so that warps access whole sectors of memory. Or nothing is
shifted, and rows are realigned through shared memory; then what all rows share fits them.

A layout may cover more than the tile's extent; the rest is padding that no thread reads or writes. Where a tile value
has extent 1 in a dimension (a value that is the same along it), every thread along that dimension holds a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from mlirfuse.support.kept import hashed_once, kept_property
from mlirfuse.support.renamed_names import refuses_old_fields

WARP = 32


FEWEST_VECTORS = 4
"""Vectors of a shifted or realigned row, at least: its ends are stored element by element, with a whole vector between
them."""


@refuses_old_fields
@hashed_once
@dataclass(frozen=True)
class BlockedLayout:
    """A blocked layout; every field has one entry a tile dimension.

    Attributes:
        vector: contiguous elements a thread holds at each repeat; more than 1 in at most one dimension.
        lanes: lanes of a warp along the dimension; powers of two whose product is 32.
        warps: warps of the block along the dimension; the innermost dimension varies fastest.
        repeats: fragments a thread holds along the dimension.
        blocks: blocks of the cluster along the dimension.
        inner: fragments a thread holds along the dimension between which no other warp's lie; empty for 1 everywhere.
        run: fragments a thread holds along the dimension between which no other lane's lie, 1 in the vector dimension;
            empty for 1 everywhere.
        shift_to: in the vector dimension, where rows are shifted, the elements to multiples of which they are, a vector
            or several; 0 in the others; empty for 0 everywhere.
        realigned: 1 where rows are realigned between their place in memory and the layout, 0 in the other dimensions.
    """

    vector: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    repeats: tuple[int, ...]
    blocks: tuple[int, ...]
    inner: tuple[int, ...] = ()
    run: tuple[int, ...] = ()
    shift_to: tuple[int, ...] = ()
    realigned: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.vector)

    @kept_property
    def threads(self) -> int:
        """Threads of one block."""
        return WARP * prod(self.warps)

    @kept_property
    def cluster(self) -> int:
        """Blocks of one cluster."""
        return prod(self.blocks)

    @kept_property
    def vector_dim(self) -> int:
        """The dimension along which a thread's elements are contiguous; the innermost if none is."""
        wide = [d for d, v in enumerate(self.vector) if v > 1]
        return wide[0] if wide else self.rank - 1

    @kept_property
    def extents(self) -> tuple[int, ...]:
        """Elements that the layout covers in each dimension."""
        factors = zip(self.vector, self.lanes, self.warps, self.repeats, self.blocks, strict=True)
        covered = [v * lanes * warps * repeats * blocks for v, lanes, warps, repeats, blocks in factors]
        for more in (self.inner, self.run):
            if more:
                covered = [n * factor for n, factor in zip(covered, more, strict=True)]
        return tuple(covered)

    @kept_property
    def elements_per_thread(self) -> int:
        return prod(self.repeats) * prod(self.inner) * prod(self.run) * prod(self.vector)

    @property
    def is_shifted(self) -> bool:
        """Whether rows are shifted."""
        return any(self.shift_to)

    @property
    def is_shifted_to_lines(self) -> bool:
        """Whether rows of whole vectors are shifted, which then lie in the layout as they do in memory."""
        return max(self.shift_to, default=0) > max(self.vector)

    @property
    def is_realigned(self) -> bool:
        """Whether rows are realigned between memory and the layout."""
        return any(self.realigned)

    @property
    def anywhere(self) -> tuple[int, ...]:
        """Not 0 in the dimension along which rows are shifted or realigned; empty where they are not."""
        return self.shift_to or self.realigned

    def slack(self, dim: int) -> int:
        """Elements by which a row may lie off where the layout has it in a dimension."""
        if self.shift_to:
            step = self.vector[dim] if self.is_shifted_to_lines else 1
            return max(0, self.shift_to[dim] - step)
        return self.vector[dim] - 1 if self.realigned and self.realigned[dim] else 0

    def is_alone(self, dims: Collection[int]) -> bool:
        """Whether one thread holds all elements of a tile along some dimensions, so that it can reduce them alone."""
        return all(self.lanes[d] * self.warps[d] * self.blocks[d] == 1 for d in dims)

    def within(self, dim: int) -> int:
        """Fragments of a thread that a warp's share of one repeat holds in a dimension."""
        return self.inner[dim] if self.inner else 1

    def neighbours(self, dim: int) -> int:
        """Fragments of a thread that lie side by side in a dimension."""
        return self.run[dim] if self.run else 1

    @property
    def has_runs(self) -> bool:
        """Whether fragments of a thread lie side by side."""
        return any(n > 1 for n in self.run)

    def fragments(self, dim: int) -> int:
        """Fragments a thread holds along a dimension."""
        return self.repeats[dim] * self.within(dim) * self.neighbours(dim)

    def held(self, dims: Iterable[int]) -> int:
        """Elements a thread holds along some dimensions together."""
        return prod([self.fragments(d) * self.vector[d] for d in dims])

    def step(self, dim: int) -> int:
        """Distance between the first elements of two neighbouring lanes, which have what lies in between."""
        return self.neighbours(dim) * self.vector[dim]

    def span(self, dim: int) -> int:
        """Elements that the lanes of a warp cover together with one run of fragments each."""
        return self.lanes[dim] * self.step(dim)

    def repeat_stride(self, dim: int) -> int:
        """Distance between two repeats of one thread in a dimension, in elements."""
        return self._repeat_strides[dim]

    @kept_property
    def _repeat_strides(self) -> tuple[int, ...]:
        strides = [warps * lanes * n for warps, lanes, n in zip(self.warps, self.lanes, self.vector, strict=True)]
        for factors in (self.inner, self.run):
            if factors:
                strides = [stride * n for stride, n in zip(strides, factors, strict=True)]
        return tuple(strides)

    def offset(self, dim: int, fragment: int) -> int:
        """Distance from a thread's first element in a dimension to that of a fragment, in elements."""
        piece, neighbour = divmod(fragment, self.neighbours(dim))
        repeat, inside = divmod(piece, self.within(dim))
        return repeat * self.repeat_stride(dim) + inside * self.span(dim) + neighbour * self.vector[dim]

    def exchanged(self, dims: Collection[int]) -> int:
        """Elements in shared memory through which the warps of a block meet that reduce a tile along dimensions."""
        senders = prod(self.warps[d] for d in dims)
        kept = prod(self.extents[d] // self.blocks[d] for d in range(self.rank) if d not in dims)
        return senders * kept if senders > 1 else 0

    def apart(self, dims: Collection[int]) -> BlockedLayout | None:
        """Reduce-scatter layout: each warp that reduces a tile along `dims` keeps a distinct slice of the result, of
        which all would keep a copy in this layout. None where a thread has no elements to leave to other warps.

        The layout may cover more than this one does, where the warps are no divisor of what a thread has.
        """
        senders, inner = prod(self.warps[d] for d in dims), self.vector_dim
        if senders == 1 or inner in dims or self.repeats[inner] == 1:
            return None
        if self.cluster > 1 or self.anywhere or self.inner or self.has_runs:
            return None
        warps = [1 if d in dims else n for d, n in enumerate(self.warps)]
        repeats = list(self.repeats)
        warps[inner] *= senders
        repeats[inner] = -(-repeats[inner] // senders)
        return replace(self, warps=tuple(warps), repeats=tuple(repeats))

    def threads_along(self, dim: int) -> int:
        """Threads of a block that have different elements of a dimension."""
        return self.lanes[dim] * self.warps[dim]

    def of_threads(self, dims: Collection[int]) -> BlockedLayout:
        """The layout of a tile with one element for each thread along some dimensions."""

        def alone(factors: tuple[int, ...]) -> tuple[int, ...]:
            found = tuple(1 if d in dims else n for d, n in enumerate(factors))
            return found if max(found, default=1) > 1 else ()

        ones = (1,) * self.rank
        return replace(
            self,
            vector=alone(self.vector) or ones,
            repeats=alone(self.repeats) or ones,
            inner=alone(self.inner),
            run=alone(self.run),
        )

    def check(self, tile: tuple[int, ...]) -> str | None:
        """What makes this layout illegal for a tile of these extents, or None."""
        return _problem(self, tile)

    def _problem(self, tile: tuple[int, ...]) -> str | None:
        within = (self.inner or self.vector, self.run or self.vector)
        factors = (self.vector, self.lanes, self.warps, self.repeats, self.blocks, *within)
        if wrong := [factor for factor in factors if len(factor) != len(tile)]:
            return f"the layout's {wrong[0]} is not one factor for each dimension of the tile {tile}"
        if min(tile, default=1) < 1:
            return f"tile {tile} has no elements"
        if min(map(min, factors)) < 1:
            return "every factor of a layout must be at least 1"
        if prod(self.lanes) != WARP or any(n & (n - 1) for n in self.lanes):
            return f"lanes {self.lanes} must be powers of two whose product is {WARP}"
        if sum(v > 1 for v in self.vector) > 1:
            return f"vector {self.vector} is contiguous in more than one dimension"
        if self.run and any(v > 1 and r > 1 for v, r in zip(self.vector, self.run, strict=True)):
            return f"run {self.run} is longer than 1 along vectors of {self.vector}, which would be longer ones"
        if self.shift_to and self.realigned:
            return "rows are shifted or realigned, not both"
        if self.anywhere and (problem := self._check_rows(tile)):
            return problem
        for d, (covered, extent) in enumerate(zip(self.extents, tile, strict=True)):
            if covered < extent + self.slack(d):
                shifted = f", shifted by {self.slack(d)} at most," if self.slack(d) else ""
                return f"layout covers {covered} of the tile's {extent} elements{shifted} in dimension {d}"
            if extent % self.vector[d] and not self.slack(d):
                return f"vectors of {self.vector[d]} do not divide the tile's {extent} elements in dimension {d}"
        return None

    def _check_rows(self, tile: tuple[int, ...]) -> str | None:
        """What is wrong with rows that are shifted or realigned, or None."""
        name, how = ("shift_to", "shifted") if self.shift_to else ("realigned", "realigned")
        if len(self.anywhere) != len(tile) or set(self.realigned) - {0, 1}:
            numbers = "0, or a number of elements," if self.shift_to else "0 or 1"
            return f"{name} {self.anywhere} must be {numbers} in each of {len(tile)} dimensions"
        for d, (here, extent) in enumerate(zip(self.anywhere, tile, strict=True)):
            if here and self.vector[d] == 1:
                return f"dimension {d} is {how}, but a thread holds single elements of it"
            if here and extent < FEWEST_VECTORS * self.vector[d]:
                return f"a {how} row of {extent} elements holds fewer than {FEWEST_VECTORS} vectors of {self.vector[d]}"
            if self.shift_to and here and (problem := self._check_shift(d, here, extent)):
                return problem
            if not here and self.repeats[d] > 1:
                return f"a thread may hold one {how} row only, not {self.repeats[d]} in dimension {d}"
        if self.realigned and self.cluster > 1:
            return "rows are realigned inside of a block, and may not be spread over a cluster"
        return f"{how} rows have no repeats inside of a warp, and no runs" if self.inner or self.has_runs else None

    def _check_shift(self, dim: int, unit: int, extent: int) -> str | None:
        """What is wrong with the elements to multiples of which rows are shifted, or None."""
        if unit & (unit - 1) or unit < self.vector[dim]:
            return f"rows are shifted to multiples of {unit}, no power of two from the vector's {self.vector[dim]} on"
        if unit > self.span(dim):
            return f"rows are shifted to multiples of {unit}, more than a warp's {self.span(dim)} in dimension {dim}"
        if unit > self.vector[dim] and extent % self.vector[dim]:
            return f"rows of {extent} are no whole vectors of {self.vector[dim]}, and are shifted to multiples of these"
        return None


@lru_cache(maxsize=1024)  # families check what they propose, and so does who asks for all of it
def _problem(layout: BlockedLayout, tile: tuple[int, ...]) -> str | None:
    """See `BlockedLayout.check`."""
    return layout._problem(tile)

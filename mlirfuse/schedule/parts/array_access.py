"""How one array of a kernel lies in memory, in terms of the kernel's iteration space, and which sectors of it tiles
share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, gcd, prod

from mlirfuse.support.kept import hashed_once
from mlirfuse.target import SECTOR


@hashed_once
@dataclass(frozen=True)
class ArrayAccess:
    """An array that a kernel reads or writes. Axes along which it has one index, or the same for all, are left out.

    Attributes:
        dims: the dimension of the space that runs along each axis, the outermost in memory first.
        strides: elements from one index to the next one along each axis; None where run time has to say.
        bytes: of an element.
        alignment: bytes that the address is a multiple of, and each stride that run time has to say.
        written: whether the kernel writes it.
        is_contiguous: whether its axes are those of a contiguous array.
        windows: of windows of an array, which overlap, for each axis how far apart those of neighbours are, less than 1
            where several of them are equal, and which elements each has, in elements of the array; empty where each
            element of the space reads one element.
        slides: of an array with `windows`, for each axis another dimension of the space along which windows move, and
            how far apart those of neighbours are along it, or None; empty where no axis has one.
        most: elements that the space reads in all, where that is fewer than places of the space, as residue classes of
            a pixel read; None where each place has an element of its own.
        inside: the share of the space's places that read it: of a part of joined arrays those that lie in it.
        views: of windows that have fewer elements than those along each axis together, such as a cross, the index of
            each element along each axis; empty for boxes.
        spread: elements of the sectors that hold what is read, for each element that is.
        times: views of the array that read neighbours of each other's elements: threads access each, and find sectors
            in the L1 that they have read for another.
    """

    dims: tuple[int, ...]
    strides: tuple[int | None, ...]
    bytes: int
    alignment: int
    written: bool
    is_contiguous: bool
    windows: tuple[tuple[int | Fraction, tuple[int, ...]], ...] = ()
    slides: tuple[tuple[int, int] | None, ...] = ()
    most: int | None = None
    inside: float = 1.0
    views: tuple[tuple[int, ...], ...] = ()
    spread: float = 1.0
    times: int = 1

    def elements(self, sides: Sequence[int]) -> int:
        """Elements that a box of the space reads, by the box's sides in all dimensions of the space."""
        if not self.windows:
            found = prod(sides[d] for d in self.dims)
            return found if self.most is None else min(found, self.most)
        if self.views:
            return _of_boxes(tuple(sides[d] for d in self.dims), self.views)
        slides = self.slides or (None,) * len(self.dims)
        return prod(
            _covered(sides[d], step, offsets if slide is None else _moved(offsets, slide[1], sides[slide[0]]))
            for d, (step, offsets), slide in zip(self.dims, self.windows, slides, strict=True)
        )

    def divided(self, dim: int, inner: int) -> ArrayAccess:
        """The array in a space of which a dimension is two: whole multiples of so many elements, and the rest.

        Windows are left out: each element of the space then reads one element.
        """
        dims: list[int] = []
        strides: list[int | None] = []
        for d, stride in zip(self.dims, self.strides, strict=True):
            if d == dim:
                dims.append(d)
                strides.append(None if stride is None else stride * inner)
            dims.append(d if d < dim else d + 1)
            strides.append(stride)
        return replace(self, dims=tuple(dims), strides=tuple(strides), windows=(), views=(), slides=())

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two dimensions of each axis along which windows move in two, the innermost in memory first."""
        return [(d, slide[0]) for d, slide in zip(self.dims, self.slides, strict=False) if slide is not None][::-1]

    @property
    def taps(self) -> int:
        """Elements that one element of the space reads."""
        return len(self.views) or prod(len(offsets) for _, offsets in self.windows)

    def growth(self, extents: Sequence[int | None]) -> int:
        """Whole elements of the array to one element of a space with these extents, which is large where run time has
        to say how large.
        """
        slides = self.slides or (None,) * len(self.windows)
        total = 1
        for d, (step, offsets), slide in zip(self.dims, self.windows, slides, strict=False):
            extent, moved = extents[d], 1 if slide is None else extents[slide[0]]
            if not extent or not moved:
                total *= 1 if slide is not None else len({floor(offset % step) for offset in offsets})
                continue
            starts = offsets if slide is None else _moved(offsets, slide[1], moved)
            total *= max(1, _covered(extent, step, starts) // (extent * moved))
        return total

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions in the order of memory, the innermost first."""
        return self.dims[::-1]

    def density(self, dim: int) -> int:
        """Elements of the array from one index to the next one along a dimension, where windows have all of these, as
        the components of an interleaved array do; else 1.
        """
        for own, (step, offsets) in zip(self.dims, self.windows, strict=False):
            if own == dim and isinstance(step, int) and len({offset % step for offset in offsets}) == step:
                return step
        return 1

    def together(self, dim: int, count: int) -> int:
        """Elements side by side of so many neighbouring indices along a dimension, which may be all of its indices: of
        an interleaved array those of all components, of parts of rows those of parts that follow one another.
        """
        for own, (step, offsets) in zip(self.dims, self.windows, strict=False):
            if own == dim and step == 1 and offsets == tuple(range(offsets[0], offsets[-1] + 1, count)):
                return count * len(offsets)
        return count * self.density(dim)

    def steps(self, extents: Sequence[int]) -> dict[int, int]:
        """The stride of each dimension; those that run time has to say follow from the extents of the space."""
        found: dict[int, int] = {}
        inner = 1
        for dim, stride in zip(reversed(self.dims), reversed(self.strides), strict=True):
            found[dim] = inner if stride is None else stride
            inner = max(inner, found[dim] * extents[dim])
        for dim, slide, (step, _) in zip(self.dims, self.slides, self.windows, strict=False):
            if slide is not None:
                found[slide[0]] = floor(found[dim] / step) * slide[1]
        return found

    def run(self, tile: Sequence[int], extents: Sequence[int]) -> int:
        """Elements side by side in memory of a tile of a space with these extents."""
        steps = self.steps(extents)
        # Windows that move by whole windows, and along these by elements, have the latter side by side.
        run = next((min(tile[d], extents[d]) for _, d in self.pairs if steps[d] == 1), 1)
        for d in self.order:
            if steps[d] != run * self.density(d):
                break
            here = min(tile[d], extents[d])
            run *= self.together(d, here)
            if here < extents[d]:
                break
        return run


def bytes_of(arrays: Iterable[ArrayAccess], sides: Sequence[int]) -> int:
    """Bytes of some arrays that a box of the space reads or writes, by the box's sides; of whole sectors where what is
    read is spread over these.
    """
    return round(sum(array.bytes * array.spread * array.elements(sides) for array in arrays))


@lru_cache(maxsize=4096)
def _covered(count: int, step: int | Fraction, offsets: tuple[int, ...]) -> int:
    """Elements along an axis that so many neighbouring windows have together.

    Those of an offset, of every window of a period, are apart by the period's elements: they are runs of what has the
    same remainder.
    """
    apart, period = Fraction(step), Fraction(step).denominator
    runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number in range(min(period, count)):
        for offset in offsets:
            first, remainder = divmod(floor(number * apart) + offset, apart.numerator)
            runs[remainder].append((first, first + ceil((count - number) / period)))
    return sum(map(_union, runs.values()))


def _union(runs: list[tuple[int, int]]) -> int:
    """Elements of some ranges together."""
    total, reached = 0, None
    for first, end in sorted(runs):
        total += max(0, end - (first if reached is None else max(first, reached)))
        reached = end if reached is None else max(reached, end)
    return total


@lru_cache(maxsize=4096)
def _of_boxes(sides: tuple[int, ...], starts: tuple[tuple[int, ...], ...]) -> int:
    """Elements of equal boxes together that begin at some elements."""
    if not sides:
        return 1
    edges = sorted({at for start in starts for at in (start[0], start[0] + sides[0])})
    total = 0
    for low, high in pairwise(edges):
        here = tuple(start[1:] for start in starts if start[0] <= low < start[0] + sides[0])
        total += (high - low) * _of_boxes(sides[1:], here) if here else 0
    return total


@lru_cache(maxsize=256)
def _moved(offsets: tuple[int, ...], step: int, count: int) -> tuple[int, ...]:
    """The elements that so many windows have together whose first elements are a step apart."""
    return tuple(sorted({number * step + offset for number in range(count) for offset in offsets}))


@lru_cache(maxsize=4096)
def split_sectors(array: ArrayAccess, tile: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, float] | None:
    """The dimension along which neighbouring tiles share sectors of an array, and how many they share in all, about.

    None where tiles consist of whole sectors.

    Args:
        array: the array.
        tile: sides of a tile of the space.
        extents: of the space.
    """
    steps = array.steps(extents)
    split = next((d for d in array.order if tile[d] < extents[d]), None)
    if split is None or array.windows:
        return None
    run = array.run(tile, extents)
    apart = [tile[d] * steps[d] if d == split else steps[d] for d in array.dims if extents[d] > 1 and steps[d] >= run]
    aligned = gcd(SECTOR, *(elements * array.bytes for elements in apart))
    if aligned == SECTOR:
        return None
    return split, prod(extents[d] for d in array.dims) / run * (1 - aligned / SECTOR)


def follows(order: Sequence[int], dim: int) -> list[int]:
    """The dimensions along which blocks follow one another before they do so along another one, by the grid's order."""
    return list(order[list(order).index(dim) + 1 :])

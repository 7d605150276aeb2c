"""What a schedule heuristic may know of a kernel: sizes and bytes, no IR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class PartOfRows:
    """A reduction over some dimensions of a tile, or of a row in it, which leaves a result for each element of others.

    Attributes:
        dims: the dimensions that it reduces.
        kept: the dimensions along which its result varies.
        bytes: of an element of its result.
    """

    dims: frozenset[int]
    kept: frozenset[int]
    bytes: int


@dataclass(frozen=True)
class WalkProblem:
    """The reductions that a whole grid works on.

    Attributes:
        dims: the dimensions that the grid walks.
        kept: the dimensions along which totals vary, or what they feed.
        total_bytes: bytes per element of a tile of the partial results that a block carries.
        column_bytes: bytes per element of a row of what all tiles share (weights, biases).
        inner: whether there are reductions inside of a tile.
        row_bytes: bytes per row of what varies along the walk only (a row's mean).
        wide: whether sums leave the kernel in the type that they are added up in, so that every rounding shows.
        walked_only: whether totals are over walked dimensions only, and none over elements of a row too.
        inner_parts: the reductions inside of a tile that reduce parts of a row.
        total_parts: the same of totals, in each tile's part of them.
    """

    dims: tuple[int, ...]
    kept: frozenset[int]
    total_bytes: int
    column_bytes: int
    inner: bool
    row_bytes: int = 0
    wide: bool = False
    walked_only: bool = True
    inner_parts: tuple[PartOfRows, ...] = ()
    total_parts: tuple[PartOfRows, ...] = ()


@dataclass(frozen=True)
class CrossedProblem:
    """Arrays that are contiguous along another dimension than most: that are transposed.

    Attributes:
        dim: that dimension.
        vector: most elements along it that one thread can move at once.
        bytes: bytes per element of the space of these arrays.
        narrowest: bytes of the narrowest element of all that the kernel accesses in whole tiles.
        mirrored: whether an array is read both as it is and with the last two dimensions swapped.
    """

    dim: int
    vector: int
    bytes: int
    narrowest: int
    mirrored: bool = False


@dataclass(frozen=True)
class Problem:
    """A kernel's iteration space and its traffic.

    Attributes:
        extents: extent of each dimension of the iteration space; None where dynamic.
        reduced: the dimensions that are reduced; empty for an elementwise kernel.
        vector_dim: the dimension along which most of the traffic is contiguous.
        vector: most elements along it that one thread can move at once.
        full_bytes: bytes per element of the space that must move through device memory.
        read_bytes: bytes per element of the space that are read from device memory.
        live_bytes: bytes per element of the space that must be kept from a reduction to its use.
        parked_bytes: bytes per element of the space that all together wait in shared memory if they are parked there.
        column_bytes: bytes per element of the reduced dimensions that every row reads again (weights, biases).
        early_column_bytes: of these, what meets the elements before any reduction.
        rounds: how many reductions follow one another.
        reductions: all of them, with what warps and blocks exchange of each.
        skewed_vector: what `vector` is in a layout that shifts rows; 0 where none may, or need to.
        line: elements to multiples of which rows of whole vectors may be shifted that begin inside of sectors; 0 where
            none do, or may be.
        walk: what a persistent grid is to do, where one can do all reductions.
        finer_walk: the same with tiles that hold no rows whole, where these are reduced together with the walk.
        walk_is_optional: whether blocks could do all reductions alone, too.
        crossed: the traffic that is contiguous along another dimension; None if there is none.
        register_factor: registers that a thread takes to those that are estimated, as far as the assembler has shown.
    """

    extents: tuple[int | None, ...]
    reduced: frozenset[int]
    vector_dim: int
    vector: int
    full_bytes: int
    read_bytes: int
    live_bytes: int = 0
    parked_bytes: int = 0
    column_bytes: int = 0
    early_column_bytes: int = 0
    rounds: int = 0
    reductions: tuple[PartOfRows, ...] = ()
    skewed_vector: int = 0
    line: int = 0
    walk: WalkProblem | None = None
    finer_walk: WalkProblem | None = None
    walk_is_optional: bool = False
    crossed: CrossedProblem | None = None
    register_factor: float = 1.0

    @property
    def rank(self) -> int:
        return len(self.extents)

    def tiles(self, tile: Sequence[int], dims: Iterable[int]) -> int | None:
        """How many tiles there are along some dimensions; None where run time has to say."""
        count = 1
        for d in dims:
            extent = self.extents[d]
            if extent is None:
                return None
            count *= -(-extent // tile[d])
        return count

    @property
    def row_elements(self) -> int:
        """Elements of the reduced dimensions together."""
        return prod(self.extents[d] or 1 for d in self.reduced)

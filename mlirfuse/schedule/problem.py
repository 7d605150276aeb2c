"""What a schedule heuristic may know of a kernel: sizes and bytes, no IR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.support.kept import hashed_once, kept_property


@hashed_once
@dataclass(frozen=True)
class RowReduction:
    """A reduction over some dimensions of a tile, or of a row in it, which leaves a result for each element of others.

    Attributes:
        dims: the dimensions that it reduces.
        kept: the dimensions along which its result varies.
        bytes: of an element of its result.
    """

    dims: frozenset[int]
    kept: frozenset[int]
    bytes: int


@hashed_once
@dataclass(frozen=True)
class PersistentLoopProblem:
    """The reductions that a whole grid works on.

    Attributes:
        dims: the dimensions of the persistent loop.
        kept: the dimensions along which reductions vary, or what they feed.
        accumulator_bytes: bytes per element of a tile of the partial results that a block carries.
        column_bytes: bytes per element of a row of what all tiles share (weights, biases).
        inner: whether there are reductions inside of a tile.
        row_bytes: bytes per row of what varies along the looped dimensions only (a row's mean).
        wide: whether sums in `f32` leave the kernel as such, so that every rounding shows.
        outer_only: whether reductions are over looped dimensions only, and none over elements of a row too.
        inner_reductions: the reductions inside of a tile that reduce parts of a row.
        outer_reductions: the same of reductions, in each tile's part of them.
    """

    dims: tuple[int, ...]
    kept: frozenset[int]
    accumulator_bytes: int
    column_bytes: int
    inner: bool
    row_bytes: int = 0
    wide: bool = False
    outer_only: bool = True
    inner_reductions: tuple[RowReduction, ...] = ()
    outer_reductions: tuple[RowReduction, ...] = ()


@hashed_once
@dataclass(frozen=True)
class GridPersistentProblem:
    """Statistics over all tiles, for a grid that visits its tiles twice where every tile needs them.

    Attributes:
        dims: the dimensions that are reduced.
        visits: of each tile, two or one.
        first_bytes: bytes per element of the space that a first visit reads.
        second_bytes: the same of a second visit.
        again_bytes: of these, what the first visit reads too.
        carried_bytes: bytes of the partial results, per element of a tile.
        column_values: values that vary along other dimensions only and that a second visit uses.
        instructions: thread instructions per element of the space, of all visits, without accesses to memory.
        special: of special functions, the same.
        double: operations in double precision, the same.
    """

    dims: tuple[int, ...]
    visits: int
    first_bytes: int
    second_bytes: int
    again_bytes: int
    carried_bytes: int
    column_values: int
    instructions: float
    special: float
    double: float


@dataclass(frozen=True)
class TransposedProblem:
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


@hashed_once
@dataclass(frozen=True)
class SharedInstructions:
    """Instructions for values that vary along some dimensions only, such as a function of a weight.

    Attributes:
        dims: the dimensions.
        instructions: of a thread for each element along these that it has.
        special: of special functions, the same.
        double: in double precision, the same.
    """

    dims: frozenset[int]
    instructions: float
    special: float
    double: float = 0.0


@hashed_once
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
        shared_spill_bytes: bytes per element of the space that all together wait in shared memory if they are spilled
            there.
        column_bytes: bytes per element of the reduced dimensions that every row reads again (weights, biases).
        early_column_bytes: of these, what meets the elements before any reduction.
        dependent_reductions: how many reductions depend on one another, one after the other.
        reductions: all of them, with what warps and blocks exchange of each.
        unaligned_vector: what `vector` is in a layout that shifts rows; 0 where none may, or need to.
        line: elements to multiples of which rows of whole vectors may be shifted that begin inside of sectors; 0 where
            none do, or may be.
        persistent_loop: what a persistent grid is to do, where one can do all reductions.
        finer_loop: the same with tiles that hold no rows whole, where these are reduced together with the persistent
            loop.
        grid_persistent: what a grid persistent kernel is to do, where one can do all of the kernel.
        loop_is_optional: whether blocks could do all reductions alone, too.
        transposed: the traffic that is contiguous along another dimension; None if there is none.
        arrays: what the kernel reads and writes, and how it lies in memory.
        copied: whether asynchronous copies can move what is read over the whole space to shared memory: no bools, which
            they would count in bits, and no components, whose neighbours lie apart.
        checks: by which elements are selected among parts of arrays; at their edges, code has every part's elements.
        instructions: thread instructions an element of the space, without accesses to memory.
        shared_instructions: of values that vary along some dimensions only.
        sliding_instructions: the same where elements of the space share what is computed of one element of an array:
            for each element of the space, and for each that a thread reads.
        special: of special functions, the same.
        double: operations in double precision, the same.
        repeated: the same three of what is computed beyond once where each reduction, and the results, need a pass of
            their own over the data.
        repeated_early: the same where results are written by the first pass that can compute them
            (`fuse-tile-chunked`).
        stores_early: whether one of these passes reduces, and writes results too.
        stores_last: whether the last one of them only writes results.
        register_scale: registers that a thread takes to those that are estimated, as far as the assembler has shown.
        hints: of each dimension whose extent is None what it is expected to be, as far as anybody says so; the others
            are None. Empty where there is no hint.
    """

    extents: tuple[int | None, ...]
    reduced: frozenset[int]
    vector_dim: int
    vector: int
    full_bytes: int
    read_bytes: int
    live_bytes: int = 0
    shared_spill_bytes: int = 0
    column_bytes: int = 0
    early_column_bytes: int = 0
    dependent_reductions: int = 0
    reductions: tuple[RowReduction, ...] = ()
    unaligned_vector: int = 0
    line: int = 0
    persistent_loop: PersistentLoopProblem | None = None
    finer_loop: PersistentLoopProblem | None = None
    grid_persistent: GridPersistentProblem | None = None
    loop_is_optional: bool = False
    transposed: TransposedProblem | None = None
    arrays: tuple[ArrayAccess, ...] = ()
    copied: bool = True
    checks: int = 0
    instructions: float = 0.0
    shared_instructions: tuple[SharedInstructions, ...] = ()
    sliding_instructions: tuple[float, float] = (0.0, 0.0)
    special: float = 0.0
    double: float = 0.0
    repeated: tuple[float, float, float] = (0.0, 0.0, 0.0)
    repeated_early: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stores_early: bool = False
    stores_last: bool = False
    register_scale: float = 1.0
    hints: tuple[int | None, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def expected(self) -> tuple[int | None, ...]:
        """The extents, or what they are expected to be; None where nobody says so."""
        hints = self.hints or (None,) * self.rank
        return tuple(hint if extent is None else extent for extent, hint in zip(self.extents, hints, strict=True))

    @property
    def grid_part(self) -> GridPersistentProblem:
        """`grid_persistent`, of a kernel with one."""
        assert self.grid_persistent is not None
        return self.grid_persistent

    @property
    def loop_part(self) -> PersistentLoopProblem:
        """`persistent_loop`, of a kernel with one."""
        assert self.persistent_loop is not None
        return self.persistent_loop

    @kept_property
    def whole(self) -> frozenset[int]:
        """The dimensions of more than one element."""
        return frozenset(d for d, extent in enumerate(self.extents) if extent != 1)

    @kept_property
    def reads(self) -> list[ArrayAccess]:
        """The arrays that it reads."""
        return [array for array in self.arrays if not array.written]

    @kept_property
    def writes(self) -> list[ArrayAccess]:
        """The arrays that it writes."""
        return [array for array in self.arrays if array.written]

    @kept_property
    def whole_arrays(self) -> list[ArrayAccess]:
        """The arrays over the whole iteration space."""
        return [array for array in self.arrays if self.whole <= set(array.dims)]

    @kept_property
    def tables(self) -> list[ArrayAccess]:
        """The arrays that it reads along rows, and that some rows share: of a rotary embedding, by positions alone."""
        inner = {self.vector_dim, *self.reduced}
        return [
            a for a in self.reads if self.vector_dim in a.dims and inner < {*a.dims} and not self.whole <= {*a.dims}
        ]

    @kept_property
    def sharing_dims(self) -> list[int]:
        """The dimensions of more than one element along which a table is the same."""
        return [d for d in sorted(self.whole) if any(d not in table.dims for table in self.tables)]

    @kept_property
    def shares_reads(self) -> bool:
        """Whether elements of the space share all that they read: no array that is read varies along all of it."""
        reads = [a for a in self.reads if a.dims]
        return len(reads) > 1 and not any(self.whole <= {*a.dims, *(d for _, d in a.pairs)} for a in reads)

    def outwards(self, dims: Iterable[int]) -> list[int]:
        """Some dimensions, the one in which memory is contiguous first, then from the innermost one outwards."""
        return sorted(dims, key=lambda d: (d != self.vector_dim, -d))

    def tile_of(self, layout: BlockedLayout, looped: Collection[int] = ()) -> tuple[int, ...]:
        """What a layout covers, and no more than there is but along the dimensions of a persistent loop."""
        sizes = enumerate(zip(layout.extents, self.extents, strict=True))
        return tuple(n if d in looped else min(n, extent or n) for d, (n, extent) in sizes)

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
    def needs_grid_persistent(self) -> bool:
        """Whether no block can reduce alone, and no persistent loop of one visit of plain reductions suffices."""
        return self.persistent_loop is None and any(self.extents[d] is None for d in self.reduced)

    @property
    def row_elements(self) -> int:
        """Elements of the reduced dimensions together."""
        return prod(self.extents[d] or 1 for d in self.reduced)

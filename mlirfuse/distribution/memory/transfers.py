"""Rules of `vector.transfer_read` and `vector.transfer_write`.

Reads handle padding and out-of-bounds elements without divergence: the index is clamped to the last fragment inside the
buffer, and the reduction masks the surplus elements. Writes are predicated. Reads of shared memory are predicated too:
a thread may read only what it wrote itself, because nothing orders its reads behind other threads' writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.memory.shared_memory import writes_shared
from mlirfuse.dialect.attributes import DIMS, OWN
from mlirfuse.dialect.flat_attribute import FLAT
from mlirfuse.distribution.access import Access, access_of, load, store
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.memory.flat_tiles import flat_group, read_flat, write_flat
from mlirfuse.distribution.memory.packed_accesses import Packing, fragment_of, load_run, packing_of, runs_of, store_run
from mlirfuse.distribution.memory.paired_stores import exchange, store_exchanged, stores_pairs
from mlirfuse.distribution.memory.rematerialized_addresses import rematerialized_address
from mlirfuse.distribution.memory.run_reads import read_by_runs, run_reads_of
from mlirfuse.distribution.memory.transposed_stores import batches, lanes_that_transpose, store_transposed, transpose
from mlirfuse.distribution.threads.fragments import Fragments, Key, Uniform, splat, widen
from mlirfuse.distribution.threads.guard import Guard, both
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.distribution.unaligned.realigned_rows import realign_row
from mlirfuse.distribution.unaligned.rows import rows_of
from mlirfuse.distribution.unaligned.unaligned_rows import Complete, start_load, store_row
from mlirfuse.schedule.model.registers import AHEAD
from mlirfuse.tiling.contractions.k_loop import feeds_contraction
from mlirfuse.tiling.tiles import zero

Check = tuple[int, int]
"""A bounds check of a stored fragment: an axis of the buffer, or -1 - a dimension of the tile, and a repeat."""


@rule("vector.transfer_read")
def transfer_read(d: Distributor, op: ir.Operation) -> None:
    """The rule of `vector.transfer_read`: loads the tile's fragments. A contraction's operand is left for the
    contraction.
    """
    if feeds_contraction(op):
        return
    if FLAT in op.attributes:
        if op.results[0] not in d.tiles:  # or else it came with the one before it
            read_flat(d, flat_group(op))
        return
    tile_type = ir.VectorType(op.results[0].type)
    tile = Fragments(d.layout, tuple(tile_type.shape), tile_type.element_type)
    buffer, *offsets, _ = op.operands
    access = access_of(d, op, buffer, offsets, list(range(d.layout.rank)), tile)
    access = replace(access, in_order=d.in_order and access.streaming)
    if OWN in op.attributes:
        access = replace(access, offsets=_own_copies(d, access))
    bounds = Bounds(access)
    if _has_unaligned_rows(tile, access):
        _read_rows(d, tile, access, bounds)
        d.tiles[op.results[0]] = tile
        return
    packing = packing_of(d, op, buffer, offsets, list(range(d.layout.rank)), tile, access.wide)
    loaded, indices_of = dict[tuple[int, ...], ir.Value](), _clamped(d, tile, access)

    def make(key: Key) -> ir.Value:
        coordinates = tuple(key[n] if n is not None else 0 for n in access.dims)
        if coordinates not in loaded and access.type.memory_space is not None:
            loaded[coordinates] = _load_own(d, tile, key, access, bounds)
        elif coordinates not in loaded:
            loaded[coordinates] = load(access, indices_of(key), tile.width)
        return loaded[coordinates]

    tile.make = make
    if packing is not None and OWN not in op.attributes:
        tile.make = _packed_reads(d, tile, packing)
    elif OWN not in op.attributes and (runs := run_reads_of(d, access, tile)) is not None:
        tile.make = read_by_runs(runs, tile, _clamped(d, tile, runs.access))
    d.tiles[op.results[0]] = tile
    # Data that many blocks read is in a cache and can be loaded at its use; other loads start as early as possible, and
    # data that the kernel also writes is read at its place in the program.
    shared = access.type.memory_space is not None
    if shared and d.depth_first and not any(writes_shared(later) for later in _following(op)):
        return
    if access.streaming and d.shared_spill and not d.in_loop:
        _read_spilled_last(d, tile)
    elif access.streaming or shared or d.in_loop:
        tile.force()


def _packed_reads(d: Distributor, tile: Fragments, packing: Packing) -> Callable[[Key], ir.Value]:
    """A function that makes fragments of the runs of memory that they are part of."""
    indices_of, runs = _clamped(d, tile, packing), dict[Key, list[ir.Value]]()

    def make(key: Key) -> ir.Value:
        run = packing.run_of(tile, key)
        if run not in runs:
            runs[run] = load_run(packing, indices_of(run))
        return fragment_of(packing, tile, key, runs[run])

    return make


def _clamped(d: Distributor, tile: Fragments, access: Access | Packing) -> Callable[[Key], list[ir.Value]]:
    """A function that makes the indices of a fragment's first element, see `clamped_index`."""
    bounds = Bounds(access)
    return lambda key: [clamped_index(d, tile, key, access, axis, bounds) for axis in range(len(access.dims))]


def _own_copies(d: Distributor, access: Access) -> list[ir.Value]:
    """Indices of the thread's own copy in a slot, whose axes are the layout's dimensions."""
    return [
        d.threads.slot_index(axis, 0, varies=False) if dim is None else offset
        for axis, (offset, dim) in enumerate(zip(access.offsets, access.dims, strict=True))
    ]


def _following(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops after `op` in its block."""
    behind = False
    for other in op.block.operations:
        if behind:
            yield other.operation
        behind = behind or other.operation == op


def _read_spilled_last(d: Distributor, tile: Fragments) -> None:
    """Loads the tile's unspilled fragments and the first of those that will be spilled, unless loads stay in order.

    Registers do not hold all fragments at once.
    """
    keys = list(tile.keys())
    for key in [*keys[: min(d.shared_spill, AHEAD)], *([] if d.in_order else keys[d.shared_spill :])]:
        tile.at(key)
    d.delayed_reads.append(tile)


@rule("vector.transfer_write")
def transfer_write(d: Distributor, op: ir.Operation) -> None:
    """The rule of `vector.transfer_write`: one thread stores each fragment that is inside the tile and the buffer."""
    if FLAT in op.attributes:
        write_flat(d, op)
        return
    _, buffer, *offsets = op.operands
    tile, dims = _written(d, op)
    access = access_of(d, op, buffer, offsets, dims, tile)
    bounds = Bounds(access)
    whole = d.threads.is_first(n for n in range(d.layout.rank) if not tile.varies(n))
    if _has_unaligned_rows(tile, access):
        _write_rows(d, tile, access, bounds, whole)
        return
    if packing := packing_of(d, op, buffer, offsets, dims, tile, access.wide):
        _packed_writes(d, tile, packing, whole)
        return
    threads, access = rematerialized_address(d, access)
    groups: dict[tuple[Check, ...], list[Key]] = {}
    for key in tile.keys():
        checks = [(axis, 0 if n is None else key[n]) for axis, n in enumerate(access.dims) if axis in access.clipped]
        checks += [(-1 - n, key[n]) for n in range(d.layout.rank) if tile.padded(key, n)]
        groups.setdefault(tuple(checks), []).append(key)

    def inside(checks: Iterable[Check], condition: ir.Value | None) -> ir.Value | None:
        return reduce(both, (_inside(threads, tile, access, *check, bounds) for check in checks), condition)

    lanes = lanes_that_transpose(d, tile, access, d.scalars[buffer])
    if lanes > 1:
        for needed, keys in groups.items():
            _store_transposed(
                d, threads, tile, access, batches(keys, d.layout.vector_dim, lanes), inside(needed, whole)
            )
        return
    paired = {n: stores_pairs(d, tile, access, _splitting(tile, access, n)) for n in groups}

    # Where fragments are made already, a check common to all becomes one branch around all stores. LLVM sinks loads,
    # such as those of weights, into that branch; with a branch for each fragment, the last fragment's loads would
    # occupy registers until the end.
    at_once = len(groups) > 1 and not d.depth_first and not any(paired.values())
    common = [check for check in min(groups) if all(check in needed for needed in groups)] if at_once else []
    with Guard(inside(common, whole) if common else None):
        for needed, keys in groups.items():
            condition = inside([c for c in needed if c not in common], None if common else whole)
            values = ((key, exchange(d, access, tile.at(key)) if paired[needed] else tile.at(key)) for key in keys)
            # All lanes take part in the exchange, so it stands before the bounds check.
            made = values if condition is None else list(values)
            with Guard(condition):
                _store_all(d, threads, tile, access, made, paired=paired[needed])


def _store_transposed(
    d: Distributor,
    threads: Threads,
    tile: Fragments,
    access: Access,
    groups: Iterable[Sequence[Key]],
    condition: ir.Value | None,
) -> None:
    """Stores fragments that lanes transpose first: all of them take part, so that stands before the bounds check."""
    for keys in groups:
        value = transpose(d, [tile.at(key) for key in keys])
        with Guard(condition):
            indices = [
                fragment_index(threads, access, axis, keys[0][n] if n is not None else 0)
                for axis, n in enumerate(access.dims)
            ]
            store_transposed(d, access, value, indices, len(keys))


def _packed_writes(d: Distributor, tile: Fragments, packing: Packing, whole: ir.Value | None) -> None:
    """Stores the runs of memory that the fragments of a tile make up."""
    bounds = Bounds(packing)
    for key, values in runs_of(packing, tile, tile.at).items():
        checks = [(axis, 0 if n is None else key[n]) for axis, n in enumerate(packing.dims) if axis in packing.clipped]
        checks += [(-1 - n, key[n]) for n in range(d.layout.rank) if n not in packing.whole and tile.padded(key, n)]
        inside = reduce(both, (_inside(d.threads, tile, packing, *check, bounds) for check in checks), whole)
        with Guard(inside):
            indices = [
                fragment_index(d.threads, packing, axis, key[n] if n is not None else 0)
                for axis, n in enumerate(packing.dims)
            ]
            store_run(packing, values, indices)


def _splitting(tile: Fragments, access: Access, checks: Iterable[Check]) -> set[int | None]:
    """The dimensions along which a check may differ between the lanes of a warp.

    If the extent is a multiple of what the warps span, all lanes of a warp agree.
    """
    whole = {n for n, extent in enumerate(tile.extents) if extent % tile.layout.span(n) == 0}
    return {access.dims[n] if n >= 0 else -1 - n for n, _ in checks if n >= 0 or -1 - n not in whole}


def _has_unaligned_rows(tile: Fragments, access: Access) -> bool:
    """Whether a transfer is of rows of any alignment, which the layout shifts or realigns."""
    anywhere = any(tile.layout.anywhere)
    return tile.varies(tile.layout.vector_dim) and anywhere and access.type.memory_space is None


def _read_rows(d: Distributor, tile: Fragments, access: Access, bounds: Bounds) -> None:
    """Loads the rows of a tile; where loads should start early, all are emitted before the first op that needs one."""
    none = (0,) * d.layout.rank
    row = [clamped_index(d, tile, none, access, axis, bounds) for axis in range(len(access.dims) - 1)]
    rows = rows_of(d, access, tile, row)
    started: dict[int, Complete] = {}
    loaded: dict[int, ir.Value] = {}

    def start(key: Key) -> Complete:
        repeat = key[d.layout.vector_dim]
        if repeat not in started:
            started[repeat] = start_load(d, rows, tile, key)
        return started[repeat]

    def make(key: Key) -> ir.Value:
        repeat = key[d.layout.vector_dim]
        if repeat not in loaded:
            loaded[repeat] = start(key)()
        return loaded[repeat]

    tile.make = make
    if not access.streaming:
        return
    if d.shared_spill:
        _read_spilled_last(d, tile)
        return
    for key in tile.keys():
        start(key)
    tile.force()


def _write_rows(d: Distributor, tile: Fragments, access: Access, bounds: Bounds, whole: ir.Value | None) -> None:
    inner, first = d.layout.vector_dim, (0,) * d.layout.rank
    threads, rematerialized = rematerialized_address(d, access)
    row = [fragment_index(threads, rematerialized, axis, 0) for axis in range(len(access.dims) - 1)]

    def active(key: Key) -> ir.Value | None:
        checks = [(axis, 0) for axis in access.clipped]
        checks += [(-1 - n, 0) for n in range(d.layout.rank) if n != inner and tile.padded(first, n)]
        return reduce(
            both, (_inside(threads, tile, rematerialized, axis_or_dim, 0, bounds) for axis_or_dim, _ in checks), whole
        )

    rows = rows_of(d, access, tile, row, rematerialized=rematerialized is not access)
    write = realign_row if d.layout.is_realigned and not rows.aligned else store_row
    write(d, threads, rows, tile, list(tile.keys()), active)


class Bounds:
    """Extents of an access's buffer, each emitted at most once."""

    def __init__(self, access: Access | Packing):
        self.access = access
        self.extents: dict[int, ir.Value] = {}

    def __getitem__(self, axis: int) -> ir.Value:
        if axis not in self.extents:
            self.extents[axis] = self.access.extent(axis)
        return self.extents[axis]


def _written(d: Distributor, op: ir.Operation) -> tuple[Fragments, list[int | None]]:
    """The tile that a write stores, and the layout dimension of each dimension of the op's vector."""
    value = op.operands[0]
    written = ir.VectorType(value.type)
    if DIMS not in op.attributes:
        tile = d.fragments(value)
        return tile, layout_dims(tile, written)
    kept = list(ir.DenseI64ArrayAttr(op.attributes[DIMS]))
    known = d.tile(value)
    if isinstance(known, Uniform):
        extents = dict(zip(kept, written.shape, strict=True))
        known = splat(d.layout, [extents.get(n, 1) for n in range(d.layout.rank)], known.value)
    return known, [*kept]


def layout_dims(tile: Fragments, written: ir.VectorType) -> list[int | None]:
    """The layout dimension of each dimension of a vector, from which unit dimensions may have been dropped."""
    if written.rank == tile.layout.rank:
        return list(range(written.rank))
    varying = iter([n for n in range(tile.layout.rank) if tile.varies(n)])
    return [next(varying) if extent != 1 else None for extent in written.shape]


def fragment_index(threads: Threads, access: Access | Packing, axis: int, repeat: int) -> ir.Value:
    """Index along an axis of the memref of the first element of a fragment."""
    dim = access.dims[axis]
    if dim is None:
        return access.offsets[axis]
    # Shared memory holds the block's slice of a tile that a cluster shares.
    in_block = access.type.memory_space is not None
    return add(access.offsets[axis], threads.index(dim, repeat, in_block=in_block))


def clamped_index(
    d: Distributor, tile: Fragments, key: Key, access: Access | Packing, axis: int, bounds: Bounds
) -> ir.Value:
    """Like `fragment_index`, clamped to the last index at which a fragment is inside the buffer."""
    dim = access.dims[axis]
    if dim is None:
        if axis not in access.clipped:
            return access.offsets[axis]
        return minimum(access.offsets[axis], add(bounds[axis], constant(-1)))
    width = d.layout.vector[dim]
    local = d.threads.index(dim, key[dim])
    if tile.padded(key, dim):
        local = minimum(local, constant(tile.extents[dim] - width))
    index = add(access.offsets[axis], local)
    if axis in access.clipped and not (access.straddles and axis == access.vector_axis):
        index = minimum(index, add(bounds[axis], constant(-width)))
    return index


def _inside(
    threads: Threads, tile: Fragments, access: Access | Packing, axis_or_dim: int, repeat: int, bounds: Bounds
) -> ir.Value:
    """Whether a fragment is inside the buffer along an axis, or inside the tile along a dimension (-1 - dimension)."""
    if axis_or_dim >= 0:
        return less(fragment_index(threads, access, axis_or_dim, repeat), bounds[axis_or_dim])
    dim = -1 - axis_or_dim
    return less(threads.index(dim, repeat), constant(tile.extents[dim]))


def _load_own(d: Distributor, tile: Fragments, key: Key, access: Access, bounds: Bounds) -> ir.Value:
    """Loads one fragment from shared memory; zero where the fragment is padding."""
    indices = [
        fragment_index(d.threads, access, axis, key[n] if n is not None else 0) for axis, n in enumerate(access.dims)
    ]
    inside = [
        _inside(d.threads, tile, access, -1 - n, key[n], bounds) for n in range(d.layout.rank) if tile.padded(key, n)
    ]
    if not inside:
        return load(access, indices, tile.width)
    element_type = access.type.element_type
    branch = scf.IfOp(reduce(lambda a, b: arith.AndIOp(a, b).result, inside), [tile.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([load(access, indices, tile.width)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([widen(arith.ConstantOp(element_type, zero(element_type)).result, tile.width)])
    return branch.results[0]


def _store_all(
    d: Distributor,
    threads: Threads,
    tile: Fragments,
    access: Access,
    values: Iterable[tuple[Key, ir.Value]],
    *,
    paired: bool,
) -> None:
    """Stores each fragment as soon as it is made; `paired` fragments come from `exchange`."""
    for key, value in values:
        indices = [
            fragment_index(threads, access, axis, key[n] if n is not None else 0) for axis, n in enumerate(access.dims)
        ]
        if paired:
            store_exchanged(d, access, value, indices)
        else:
            store(access, value, indices, tile.width)

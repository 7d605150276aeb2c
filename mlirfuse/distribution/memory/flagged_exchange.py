"""The rules of `fuse.flagged_store` and `fuse.flagged_load`: each thread accesses its own fragments of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.dialect.flagged_load import flagged_load
from mlirfuse.dialect.flagged_store import flagged_store
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, widen
from mlirfuse.distribution.threads.scalars import add, constant, less
from mlirfuse.tiling.tiles import zero


@rule("fuse.flagged_store")
def store_flagged_tile(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.flagged_store`: each element of the tile is stored by exactly one thread."""
    value, flagged_buffer, *indices = op.operands
    tile = d.fragments(value)
    starts = [d.scalars[index] for index in indices]
    for key in tile.keys():
        fragment, is_owner = tile.at(key), owns_fragment(d, tile, key)
        branch = scf.IfOp(is_owner) if is_owner is not None else None
        with ir.InsertionPoint(branch.then_block) if branch else ir.InsertionPoint.current:
            flagged_store(fragment, d.scalars[flagged_buffer], _indices(d, tile, starts, key))
            if branch:
                scf.YieldOp([])


@rule("fuse.flagged_load")
def load_flagged_tiles(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.flagged_load`.

    Fragments that the same threads hold are waited for together; of fragments that several threads hold, the first
    loads.
    """
    flagged_buffer, *indices = op.operands
    partials = ir.IntegerAttr(op.attributes["partials"]).value
    type_ = ir.VectorType(op.results[0].type)
    tiles = [Fragments(d.layout, tuple(type_.shape), type_.element_type) for _ in range(partials)]
    starts = [d.scalars[index] for index in indices]
    d.force_all()
    groups: dict[tuple[tuple[int, int], ...], list[Key]] = {}
    for key in tiles[0].keys():
        groups.setdefault(_padded(d, tiles[0], key), []).append(key)
    for keys in groups.values():
        loaded = _flagged_load(
            d,
            tiles[0],
            d.scalars[flagged_buffer],
            [_indices(d, tiles[0], starts, key) for key in keys],
            partials,
            keys[0],
        )
        for key, values in zip(keys, loaded, strict=True):
            for tile, value in zip(tiles, values, strict=True):
                tile.values[key] = value
    d.tiles.update(zip(op.results, tiles, strict=True))


def _flagged_load(
    d: Distributor,
    tile: Fragments,
    flagged_buffer: ir.Value,
    places: Sequence[Sequence[ir.Value]],
    partials: int,
    key: Key,
) -> list[list[ir.Value]]:
    """The partials of each place; zeros in threads that do not load them."""
    is_owner = owns_fragment(d, tile, key)
    if is_owner is None:
        return flagged_load(flagged_buffer, places, tile.type, partials)
    branch = scf.IfOp(is_owner, [tile.type] * (partials * len(places)), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([value for values in flagged_load(flagged_buffer, places, tile.type, partials) for value in values])
    with ir.InsertionPoint(branch.else_block):
        zeros = widen(arith.ConstantOp(tile.element_type, zero(tile.element_type)).result, tile.width)
        scf.YieldOp([zeros] * (partials * len(places)))
    values = list(branch.results)
    return [values[n : n + partials] for n in range(0, len(values), partials)]


def _padded(d: Distributor, tile: Fragments, key: Key) -> tuple[tuple[int, int], ...]:
    """(dimension, repeat) pairs in which some thread's fragment is padding."""
    return tuple((n, key[n]) for n in range(d.layout.rank) if tile.padded(key, n))


def owns_fragment(d: Distributor, tile: Fragments, key: Key) -> ir.Value | None:
    """Whether a fragment is inside the tile and the thread is the first that holds it, as an `i1`; None if always."""
    checks = [less(d.threads.index(n, repeat), constant(tile.extents[n])) for n, repeat in _padded(d, tile, key)]
    is_first = d.threads.is_first(n for n in range(d.layout.rank) if not tile.varies(n))
    checks += [is_first] if is_first is not None else []
    return reduce(lambda a, b: arith.AndIOp(a, b).result, checks) if checks else None


def _indices(d: Distributor, tile: Fragments, starts: Sequence[ir.Value], key: Key) -> list[ir.Value]:
    """Indices of a fragment in the flagged buffer, whose last dimensions are those of the tile."""
    lead = len(starts) - d.layout.rank
    return [
        start if n < 0 or not tile.varies(n) else add(start, d.threads.index(n, key[n]))
        for n, start in enumerate(starts, -lead)
    ]

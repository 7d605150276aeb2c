"""Stores of fragments that are wider than one access: neighbouring lanes exchange halves, so that sectors are whole.

A thread's fragment has as many elements as 16 bytes hold of the narrowest type that a kernel moves. Where it is stored
as a wider type it takes several accesses, and if each thread stored its own, one access of a warp would touch every
other 16 bytes: the L2 would receive every sector of 32 bytes in two halves. Instead two lanes that are neighbours
along the vectors exchange: the even one stores the first halves of both fragments, the odd one the second, each pair
of lanes 32 contiguous bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.distribution.access import Access, store_part
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, elements, fragment_type
from mlirfuse.distribution.threads.scalars import add, constant, multiply, remainder
from mlirfuse.distribution.threads.shuffles import butterfly, lane_offsets
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.target import SECTOR

WORD = 32
"""Bits that a shuffle moves."""


def stores_pairs(d: Distributor, tile: Fragments, access: Access, checked: Iterable[int | None]) -> bool:
    """Whether neighbouring lanes store each other's halves.

    Args:
        d: the distributor.
        tile: what is stored.
        access: how; a thread's own accesses would be of half a sector each.
        checked: layout dimensions along which lanes may find themselves outside, and stay away.
    """
    dim = d.layout.vector_dim
    return (
        access.vector_axis is not None
        and access.bytes * 2 == SECTOR
        and tile.width % (2 * access.width) == 0
        and d.layout.lanes[dim] > 1
        and access.type.memory_space is None
        and dim not in checked
    )


def exchange(d: Distributor, access: Access, value: ir.Value) -> ir.Value:
    """A fragment in which every second piece of a lane is its neighbour's; all lanes of the warp come here."""
    odd = _is_odd(d)
    distance = lane_offsets(d.layout, [d.layout.vector_dim])[0]
    words = elements(_as_words(value))
    size = len(words) * access.width // ir.VectorType(value.type).shape[0]
    pieces = [words[start : start + size] for start in range(0, len(words), size)]
    moved: list[ir.Value] = []
    for first, second in zip(pieces[::2], pieces[1::2], strict=True):
        received = [butterfly(arith.SelectOp(odd, a, b).result, distance) for a, b in zip(first, second, strict=True)]
        moved += [arith.SelectOp(odd, r, a).result for a, r in zip(first, received, strict=True)]
        moved += [arith.SelectOp(odd, b, r).result for b, r in zip(second, received, strict=True)]
    whole = vector.FromElementsOp(ir.VectorType.get([len(words)], words[0].type), moved).result
    return whole if whole.type == value.type else vector.BitCastOp(value.type, whole).result


def _as_words(value: ir.Value) -> ir.Value:
    """A fragment as numbers of 32 bits, which is what a shuffle moves."""
    fragment = ir.VectorType(value.type)
    bits = from_mlir(fragment.element_type).bits
    if bits == WORD:
        return value
    words = ir.VectorType.get([fragment.shape[0] * bits // WORD], ir.IntegerType.get_signless(WORD))
    return vector.BitCastOp(words, value).result


def store_exchanged(d: Distributor, access: Access, value: ir.Value, indices: list[ir.Value]) -> None:
    """Stores what `exchange` made of a fragment; `indices` are those of the thread's own."""
    assert access.vector_axis is not None  # stores_pairs has looked
    scalars, axis, width = elements(value), access.vector_axis, access.width
    lane = remainder(d.threads.lane[d.layout.vector_dim], 2)
    back = multiply(lane, width - len(scalars))
    start = add(indices[axis], back)
    for number, first in enumerate(range(0, len(scalars), width)):
        offset = number // 2 * 2 * width + number % 2 * len(scalars)
        place = list(indices)
        place[axis] = add(start, constant(offset)) if offset else start
        store_part(access, _vector(scalars[first : first + width], access), place)


def _vector(scalars: list[ir.Value], access: Access) -> ir.Value:
    return vector.FromElementsOp(fragment_type(access.width, access.type.element_type), scalars).result


def _is_odd(d: Distributor) -> ir.Value:
    """Whether the lane is the second of its pair."""
    lane = remainder(d.threads.lane[d.layout.vector_dim], 2)
    return arith.CmpIOp(arith.CmpIPredicate.ne, lane, constant(0)).result

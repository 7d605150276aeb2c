"""Stores of fragments that take several accesses: neighbouring lanes exchange halves, so that each access fills
sectors.

A fragment has as many elements as 16 bytes hold of the narrowest type that a kernel moves. Stored as a wider type, a
fragment takes several accesses, and each access of a warp would touch every other 16 bytes, so that the L2 receives
every sector of 32 bytes in two halves. Instead two neighbouring lanes exchange halves: the even lane stores the first
halves of both fragments and the odd lane the second, 32 contiguous bytes for each pair of lanes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.distribution.access import Access, store_piece
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
        d: the kernel.
        tile: the tile that is stored.
        access: the store; a thread's own accesses would be half a sector each.
        checked: layout dimensions along which some lanes of a warp may be outside and skip the store.
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
    """Exchanges every second piece of a fragment with the neighbouring lane; all lanes of the warp must take part."""
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
    """A fragment as 32-bit integers, the unit of a shuffle."""
    fragment = ir.VectorType(value.type)
    bits = from_mlir(fragment.element_type).bits
    if bits == WORD:
        return value
    words = ir.VectorType.get([fragment.shape[0] * bits // WORD], ir.IntegerType.get_signless(WORD))
    return vector.BitCastOp(words, value).result


def store_exchanged(d: Distributor, access: Access, value: ir.Value, indices: list[ir.Value]) -> None:
    """Stores a fragment returned by `exchange`; `indices` are those of the thread's own fragment."""
    assert access.vector_axis is not None  # stores_pairs checks it
    scalars, axis, width = elements(value), access.vector_axis, access.width
    lane = remainder(d.threads.lane[d.layout.vector_dim], 2)
    back = multiply(lane, width - len(scalars))
    start = add(indices[axis], back)
    for number, first in enumerate(range(0, len(scalars), width)):
        offset = number // 2 * 2 * width + number % 2 * len(scalars)
        place = list(indices)
        place[axis] = add(start, constant(offset)) if offset else start
        store_piece(access, _vector(scalars[first : first + width], access), place)


def _vector(scalars: list[ir.Value], access: Access) -> ir.Value:
    return vector.FromElementsOp(fragment_type(access.width, access.type.element_type), scalars).result


def _is_odd(d: Distributor) -> ir.Value:
    """Whether the lane is the second of its pair."""
    lane = remainder(d.threads.lane[d.layout.vector_dim], 2)
    return arith.CmpIOp(arith.CmpIPredicate.ne, lane, constant(0)).result

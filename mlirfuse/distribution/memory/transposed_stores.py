"""Stores of fragments of one word: lanes whose fragments are neighbours in memory exchange them first.

Matrix instructions leave a thread two neighbouring elements of each 8 columns, and four lanes a row of these. Stored as
they are, 16-bit elements fill half a sector a row with each access of a warp. Where a thread has as many fragments in a
row as there are such lanes, the lanes transpose them: each gets one of the fragments of all lanes, whose elements are
contiguous.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.distribution.access import Access, store_piece
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.memory.paired_stores import WORD
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements
from mlirfuse.distribution.threads.scalars import add, constant, divide, multiply, remainder
from mlirfuse.distribution.threads.shuffles import butterfly, lane_offsets
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.memory import access_elements

MOST_LANES = 4
"""Lanes whose words fill the widest access."""


def lanes_that_transpose(d: Distributor, tile: Fragments, access: Access, buffer: ir.Value) -> int:
    """How many neighbouring lanes transpose their fragments before they store them; 1 for none.

    Args:
        d: the kernel.
        tile: the tile that is stored.
        access: the store.
        buffer: the memref that is stored to, whose alignment is known.
    """
    layout, dim = d.layout, d.layout.vector_dim
    lanes, axis = layout.lanes[dim], access.vector_axis
    if axis is None or access.type.memory_space is not None or axis in access.clipped or access.width != tile.width:
        return 1
    if lanes not in (2, MOST_LANES) or tile.width * from_mlir(tile.element_type).bits != WORD:
        return 1
    repeats = tile.repeats(dim)
    row = lanes * tile.width
    if repeats % lanes or tile.extents[dim] % row or any(tile.padded(key, dim) for key in tile.keys()):
        return 1
    if any(layout.offset(dim, n + 1) - layout.offset(dim, n) != row for n in range(repeats) if (n + 1) % lanes):
        return 1
    declared = d.argument_attributes.get(buffer, {}).get(ALIGN)
    alignment = ir.IntegerAttr(declared).value if declared is not None else None
    wide = access_elements(access.type, axis, alignment, row)
    return lanes if wide == row and layout.step(dim) == tile.width else 1


def batches(keys: Iterable[Key], dim: int, lanes: int) -> list[list[Key]]:
    """Keys of fragments that are transposed together: so many, one after the other along the dimension."""
    found: dict[Key, list[Key]] = {}
    for key in keys:
        first = tuple(n // lanes * lanes if d == dim else n for d, n in enumerate(key))
        found.setdefault(first, []).append(key)
    return list(found.values())


def transpose(d: Distributor, fragments: list[ir.Value]) -> ir.Value:
    """The lane's fragment of the given ones, of all lanes; every lane of the warp must take part."""
    dim, lanes = d.layout.vector_dim, len(fragments)
    vectors = [_as_vector(fragment) for fragment in fragments]
    held = ir.VectorType(vectors[0].type)
    i32 = ir.IntegerType.get_signless(WORD)
    word = ir.VectorType.get([1], i32)
    words = [elements(vector.BitCastOp(word, fragment).result)[0] for fragment in vectors]
    for bit, distance in enumerate(lane_offsets(d.layout, [dim])):
        step = 1 << bit
        parity = remainder(divide(d.threads.lane[dim], step), 2)
        odd = arith.CmpIOp(arith.CmpIPredicate.ne, parity, constant(0)).result
        for low in (n for n in range(lanes) if not n & step):
            high = low | step
            received = butterfly(arith.SelectOp(odd, words[low], words[high]).result, distance)
            words[low] = arith.SelectOp(odd, received, words[low]).result
            words[high] = arith.SelectOp(odd, words[high], received).result
    whole = vector.FromElementsOp(ir.VectorType.get([lanes], i32), words).result
    return vector.BitCastOp(ir.VectorType.get([lanes * held.shape[0]], held.element_type), whole).result


def _as_vector(fragment: ir.Value) -> ir.Value:
    """A fragment of one element as a vector of one."""
    if isinstance(fragment.type, ir.VectorType):
        return fragment
    return vector.BroadcastOp(ir.VectorType.get([1], fragment.type), fragment).result


def store_transposed(d: Distributor, access: Access, value: ir.Value, indices: list[ir.Value], lanes: int) -> None:
    """Stores what `transpose` returned; `indices` are those of the thread's own first fragment."""
    assert access.vector_axis is not None  # lanes_that_transpose checks it
    place, width = list(indices), access.width
    moved = multiply(d.threads.lane[d.layout.vector_dim], (lanes - 1) * width)
    place[access.vector_axis] = add(place[access.vector_axis], moved)
    wide = lanes * width
    store_piece(replace(access, width=wide, wide=wide), value, place)

"""Reads of arrays that are contiguous along a run of a thread, and not along its vectors.

A thread that has a run of a tile's elements along one dimension and vectors along another one reads each array by the
widest accesses along the dimension in which that array is contiguous. Where the array varies along both, an access has
one element of several fragments each, and these are put together in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import vector

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.distribution.access import Access, load
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements
from mlirfuse.distribution.threads.scalars import add, constant
from mlirfuse.tiling.memory import access_elements, permuted, strides


@dataclass(frozen=True)
class RunReads:
    """How a thread reads runs of an array.

    Attributes:
        access: to a view of the array whose last axis is that of runs.
        dim: the dimension of the layout along which runs lie.
        count: elements of a run.
    """

    access: Access
    dim: int
    count: int

    def run_of(self, key: Key) -> Key:
        """The key of the first fragment of a run."""
        return tuple(n - n % self.count if d == self.dim else n for d, n in enumerate(key))


def run_reads_of(d: Distributor, access: Access, tile: Fragments) -> RunReads | None:
    """How the fragments of a tile are read by runs; None where that makes no access wider.

    Runs may not reach past the end of the array or of the tile.

    Args:
        d: the kernel.
        access: to the fragments one by one.
        tile: the fragments.
    """
    type_ = access.type
    axis = next((a for a, step in enumerate(strides(type_)) if step == 1 and type_.shape[a] != 1), None)
    dim = None if axis is None else access.dims[axis]
    if axis is None or dim is None or type_.memory_space is not None or any(tile.layout.anywhere):
        return None
    count = tile.layout.neighbours(dim)
    if count == 1 or axis in access.clipped or any(tile.padded(key, dim) for key in tile.keys()):
        return None
    declared = d.argument_attributes.get(access.buffer, {}).get(ALIGN)
    align = ir.IntegerAttr(declared).value if declared is not None else None
    width = access_elements(type_, axis, align, count)
    while count % width:
        width //= 2
    if width == 1:
        return None
    order = [*(a for a in range(type_.rank) if a != axis), axis]
    own = replace(
        access,
        buffer=permuted(access.buffer, order),
        offsets=[access.offsets[a] for a in order],
        dims=[access.dims[a] for a in order],
        clipped=frozenset(map(order.index, access.clipped)),
        width=width,
        vector_axis=order.index(axis),
        straddles=False,
        wide=width,
    )
    return RunReads(own, dim, count)


def read_by_runs(
    reads: RunReads, tile: Fragments, indices_of: Callable[[Key], Sequence[ir.Value]]
) -> Callable[[Key], ir.Value]:
    """A function that makes fragments of the runs that their elements are part of.

    Args:
        reads: how runs are read.
        tile: the fragments.
        indices_of: of the first element of a fragment in the view of the array.
    """
    runs: dict[Key, list[list[ir.Value]]] = {}
    along = tile.layout.vector_dim
    places = [axis for axis, dim in enumerate(reads.access.dims) if dim == along]

    def start(first: Key) -> list[list[ir.Value]]:
        indices = list(indices_of(first))
        found = []
        for element in range(tile.width):
            own = [add(n, constant(element)) if axis in places and element else n for axis, n in enumerate(indices)]
            found.append(elements(load(reads.access, own, reads.count)))
        return found

    def make(key: Key) -> ir.Value:
        first = reads.run_of(key)
        if first not in runs:
            runs[first] = start(first)
        found = [run[key[reads.dim] - first[reads.dim]] for run in runs[first]]
        return found[0] if tile.width == 1 else vector.FromElementsOp(tile.type, found).result

    return make

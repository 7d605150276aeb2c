"""`fuse-merge-stores`: what a thread stores element by element of one row of an array, it stores in wide pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import vector

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.passes.gpu.row_accesses import RowStores, rows_of_stores
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseMergeStores(Pass):
    """Makes stores of neighbouring elements of a row of an array fewer and wider ones.

    Requires one thread's code (`gpu.func`), before `fuse-narrow-bounds`. Of values whose elements are stored between
    one another's, such as both numbers of each pair (`fuse.scatter`), a thread has neighbours in the end. Stores are of
    one row where they are of one argument, and their indices are equal but for a number that is added to the last one.
    Elements that fill an aligned piece of up to 16 bytes are stored at the last of their stores, which no op that may
    read memory, or write other than by such stores, separates from the first: a thread stores an element of a result
    once. Declines where nothing is known of alignment.

    ```mlir
    memref.store %a, %y[%i, %j] : memref<64x512xf32>   // 2 divides %j
    memref.store %b, %y[%i, %j1] : memref<64x512xf32>  // %j1 = %j + 1
    ```
    becomes
    ```mlir
    %ab = vector.from_elements %a, %b : vector<2xf32>
    vector.store %ab, %y[%i, %j] {alignment = 8} : memref<64x512xf32>, vector<2xf32>
    ```
    """

    name: ClassVar[str] = "fuse-merge-stores"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            before = after = 0
            for row in rows_of_stores(kernel, {"memref.store"}):
                for piece in _pieces(row):
                    before, after = before + len(piece), after + 1
                    _merge(row, piece)
            if before:
                remarks.applied(self, f"{before} stores of {symbol(kernel)} are {after}", kernel)
            else:
                remarks.declined(self, "no stores fill an aligned piece together", kernel)


def _pieces(row: RowStores) -> list[list[int]]:
    """The numbers of the elements of each piece, the widest pieces first."""
    left, found, width = set(row.stores), list[list[int]](), row.aligned
    while width > 1:
        for start in sorted({number // width * width for number in left}):
            piece = list(range(start, start + width))
            if left.issuperset(piece):
                left.difference_update(piece)
                found.append(piece)
        width //= 2
    return found


def _merge(row: RowStores, piece: Sequence[int]) -> None:
    """Replaces the stores of a piece's elements by one, at the last of them."""
    order = list(row.stores)
    ops, last = [row.stores[number] for number in piece], row.stores[max(piece, key=order.index)]
    values, (_, array, *at) = [op.operands[0] for op in ops], ops[0].operands
    element = ir.MemRefType(array.type).element_type
    with ir.InsertionPoint(last), last.location:
        whole = vector.FromElementsOp(ir.VectorType.get([len(values)], element), values).result
        align = len(values) * from_mlir(element).bytes
        vector.StoreOp(whole, array, at, nontemporal=is_nontemporal(last) or None, alignment=align)
    for op in ops:
        erase(op)

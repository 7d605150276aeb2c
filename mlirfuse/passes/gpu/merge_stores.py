"""`fuse-merge-stores`: what a thread stores element by element of one row of an array, it stores in wide pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import vector

from mlirfuse.analysis.kernels import argument_attributes, gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.passes.gpu.row_accesses import aligned_elements, split_index
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, nested

STORE = "memref.store"


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
            for row in _rows(kernel):
                for piece in row.pieces():
                    before, after = before + len(piece), after + 1
                    row.merge(piece)
            if before:
                remarks.applied(self, f"{before} stores of {symbol(kernel)} are {after}", kernel)
            else:
                remarks.declined(self, "no stores fill an aligned piece together", kernel)


@dataclass
class _Row:
    """Stores to one row of an array, in program order, each of another element.

    Attributes:
        aligned: elements that the last index, without its number, is known to be a multiple of, a power of two.
        stores: by the number that is added to the last index, in program order.
    """

    aligned: int
    stores: dict[int, ir.Operation]

    def pieces(self) -> list[list[int]]:
        """The numbers of the elements of each piece, the widest pieces first."""
        left, found, width = set(self.stores), list[list[int]](), self.aligned
        while width > 1:
            for start in sorted({number // width * width for number in left}):
                piece = list(range(start, start + width))
                if left.issuperset(piece):
                    left.difference_update(piece)
                    found.append(piece)
            width //= 2
        return found

    def merge(self, piece: Sequence[int]) -> None:
        """Replaces the stores of a piece's elements by one, at the last of them."""
        order = list(self.stores)
        ops, last = [self.stores[number] for number in piece], self.stores[max(piece, key=order.index)]
        values, (_, array, *at) = [op.operands[0] for op in ops], ops[0].operands
        element = ir.MemRefType(array.type).element_type
        with ir.InsertionPoint(last), last.location:
            whole = vector.FromElementsOp(ir.VectorType.get([len(values)], element), values).result
            align = len(values) * from_mlir(element).bytes
            vector.StoreOp(whole, array, at, nontemporal=is_nontemporal(last) or None, alignment=align)
        for op in ops:
            erase(op)


def _rows(kernel: ir.Operation) -> list[_Row]:
    """The stores to a kernel's arguments, by row, and by what may read or write an array in between."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    known = dict(zip(arguments, argument_attributes(kernel), strict=False))
    found: list[_Row] = []
    open_: dict[tuple[object, ...], _Row] = {}
    for op in nested(kernel):
        if op.name == STORE and op.operands[1] in known:
            _, array, *at = op.operands
            if not at:
                continue
            rest, number = split_index(at[-1])
            key = (op.block, array, *at[:-1], rest, is_nontemporal(op))
            if key not in open_ or number in open_[key].stores:
                open_[key] = _Row(aligned_elements(array, rest, known[array]), {})
                found.append(open_[key])
            open_[key].stores[number] = op
        elif not is_pure(op):
            open_.clear()
    return found

"""`lower-cluster-views`: loads from another block's shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, memref, nvvm

from mlirfuse.errors import PassError
from mlirfuse.lowering.async_ops.shared_address import shared_pointer
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import erase, ops_named

LOADS = ("vector.load", "memref.load")


@dataclass(frozen=True)
class LowerClusterViews(Pass):
    """Lowers `fuse.cluster_view` to `nvvm.mapa`, and the loads from it to loads from the cluster's address space.

    Requires that views are used by loads alone; upstream has no memref of that address space.

    ```mlir
    %peer = "fuse.cluster_view"(%buffer, %rank) : (memref<128x136xf32, ...>, index) -> memref<128x136xf32, 7>
    %v = vector.load %peer[%i, %j] {alignment = 16 : i64} : memref<128x136xf32, 7>, vector<4xf32>
    // lower-cluster-views
    %remote = nvvm.mapa %own, %rank32 : !llvm.ptr<3> -> !llvm.ptr<7>
    %element = llvm.inttoptr %address : i64 to !llvm.ptr<7>
    %v = llvm.load %element {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    ```

    Raises `PassError` for another use of a view.
    """

    name: ClassVar[str] = "lower-cluster-views"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            views = ops_named(func.operation, "fuse.cluster_view")
            for view in views:
                with ir.InsertionPoint(view), view.location:
                    base = _base(view)
                for load in [use.owner.operation for use in view.results[0].uses]:
                    if load.name not in LOADS:
                        reason = f"{load.name} cannot access another block's shared memory, only loads can"
                        raise PassError(reason, where=load)
                    with ir.InsertionPoint(load), load.location:
                        load.results[0].replace_all_uses_with(_load(load, base))
                    erase(load)
                erase(view)
            if views:
                remarks.applied(self, f"{len(views)} views of other blocks' memory", func)


def _base(view: ir.Operation) -> ir.Value:
    """The address (i64) of the first element in the other block."""
    buffer, rank = view.operands
    own = shared_pointer(memref.extract_aligned_pointer_as_index(buffer))
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    remote = nvvm.mapa(ir.Type.parse("!llvm.ptr<7>"), own, arith.index_cast(i32, rank))
    return llvm.ptrtoint(i64, remote)


def _load(load: ir.Operation, base: ir.Value) -> ir.Value:
    type_, i64 = ir.MemRefType(load.operands[0].type), ir.IntegerType.get_signless(64)
    size = element_bytes(type_)
    offset = arith.index_cast(i64, _linear(list(load.operands)[1:], type_.get_strides_and_offset()[0]))
    address = arith.addi(base, arith.muli(offset, arith.constant(i64, size)))
    alignment = ir.IntegerAttr(load.attributes["alignment"]).value if "alignment" in load.attributes else size
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<7>"), address)
    return llvm.LoadOp(load.results[0].type, pointer, alignment=alignment).result


def _linear(indices: Sequence[ir.Value], strides: Sequence[int]) -> ir.Value:
    index = ir.IndexType.get()
    total = arith.constant(index, 0)
    for value, stride in zip(indices, strides, strict=True):
        total = arith.addi(total, arith.muli(value, arith.constant(index, stride)))
    return total

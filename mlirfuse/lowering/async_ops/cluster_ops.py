"""`lower-cluster-ops`: communication between the blocks of a cluster becomes NVVM ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, scf

from mlirfuse.dialect.async_load import peers_of
from mlirfuse.errors import PassError, TargetError
from mlirfuse.lowering.async_ops.shared_address import element_address, shared_pointer
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, ops_named


@dataclass(frozen=True)
class LowerClusterOps(Pass):
    """Lowers stores and sends to other blocks through `nvvm.mapa`, and cluster barriers to an arrive and a wait.

    `barrier.cluster.arrive` has release and `barrier.cluster.wait` acquire semantics by default, at cluster scope,
    which is what the barrier op promises. The `aligned` forms are used, as whole blocks reach the op. A send is
    `st.async` after a warp barrier, by which the send releases the writes of all lanes of the warp. The cluster's shape
    (`known_cluster_size`) is lowered upstream.

    ```mlir
    "fuse.cluster_store"(%v, %buffer, %i, %rank)
        : (f32, memref<64xf32, #gpu.address_space<workgroup>>, index, index) -> ()
    "fuse.cluster_barrier"() : () -> ()
    // lower-cluster-ops
    %own = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    %remote = nvvm.mapa %own, %rank32 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %v, %remote : f32, !llvm.ptr<7>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    ```

    Raises `TargetError` where a kernel uses clusters and its target has none, and `PassError` for an op in a kernel
    without a cluster.
    """

    name: ClassVar[str] = "lower-cluster-ops"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, *_LOWERINGS)
            if not ops and "known_cluster_size" not in func.attributes:
                continue
            target = target_of_kernel(func)
            if not target.has_clusters:
                raise TargetError(
                    f"kernel {func.attributes['sym_name']} uses thread-block clusters, and {target.chip} has none",
                    where=func,
                    hint="choose a schedule with cluster size 1, or sm_90 or later",
                )
            if ops and "known_cluster_size" not in func.attributes:
                raise PassError(
                    f"kernel {func.attributes['sym_name']} has cluster ops but no known_cluster_size",
                    where=func,
                    hint="set known_cluster_size, or give the kernel's layout more than one block",
                )
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _LOWERINGS[op.name](op)
                erase(op)
            remarks.applied(self, f"{len(ops)} cluster ops lowered", func)


def _lower_store(op: ir.Operation) -> None:
    value, buffer, index, rank = op.operands
    dtype = from_mlir(value.type)
    if dtype.kind == "bool":  # a byte in memory, see bool_bytes.py
        value = arith.extui(ir.IntegerType.get_signless(8), value)
    block = arith.index_cast(ir.IntegerType.get_signless(32), rank)
    llvm.StoreOp(value, _remote(buffer, index, block), alignment=dtype.bytes)


def _remote(buffer: ir.Value, index: ir.Value, block: ir.Value) -> ir.Value:
    """The pointer to an element of this buffer in another block of the cluster."""
    return nvvm.mapa(ir.Type.parse("!llvm.ptr<7>"), shared_pointer(element_address(buffer, index)), block)


def _lower_barrier(_: ir.Operation) -> None:
    nvvm.cluster_arrive(aligned=True)
    nvvm.cluster_wait(aligned=True)


def _lower_send(op: ir.Operation) -> None:
    value, buffer, index, rank, barriers, number = op.operands
    i32 = ir.IntegerType.get_signless(32)
    bits = 8 * from_mlir(value.type).bytes
    nvvm.bar_warp_sync(arith.constant(i32, -1))
    peers = arith.constant(ir.IndexType.get(), peers_of(op))
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ult, rank, peers))
    with ir.InsertionPoint(branch.then_block):
        block = arith.index_cast(i32, rank)
        place, barrier = _remote(buffer, index, block), _remote(barriers, number, block)
        word = arith.bitcast(ir.IntegerType.get_signless(bits), value)
        text = f"st.async.shared::cluster.mbarrier::complete_tx::bytes.b{bits} [$0], $1, [$2];"
        nvvm.InlinePtxOp([], [place, word, barrier], [], text)
        scf.YieldOp([])


_LOWERINGS: dict[str, Callable[[ir.Operation], None]] = {
    "fuse.cluster_store": _lower_store,
    "fuse.cluster_barrier": _lower_barrier,
    "fuse.cluster_send": _lower_send,
}

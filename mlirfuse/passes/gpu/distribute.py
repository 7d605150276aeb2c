"""`fuse-distribute`: tile programs become one thread's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import gpu

import mlirfuse.distribution.rules  # noqa: F401  (registers the rules)
from mlirfuse.analysis.kernels import LEAST_BLOCKS, argument_attributes, body, is_tile_program, kernels, symbol
from mlirfuse.dialect.attributes import CLUSTER, COOPERATIVE, EQUAL_EXTENTS, ORDERED
from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.distribution.distributor import Distributor, layouts_of
from mlirfuse.distribution.grid import RESIDENT_BLOCKS, device_bound, is_least, set_grid
from mlirfuse.distribution.threads.scalars import divide
from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseDistribute(Pass):
    """Distributes every tile vector over threads by its layout, and turns the kernel into a `gpu.func`.

    Requires a tile program (one `scf.forall` over blocks in a function with `fuse.kernel`) whose anchors carry
    `fuse.layout`, one in each op of its body, and a forall bound that is a constant, or an `affine.apply` or
    `affine.min` of arguments' extents and of `fuse.resident_blocks`. Reductions run in registers, then by shuffles,
    then through shared memory; independent reductions share a barrier. Reads of padding are clamped into the tile and
    masked where they are reduced; writes of padding are predicated. One thread of a block handles semaphores.

    ```mlir
    scf.forall (%block) in (%blocks) {
      %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.layout = ...} : memref<?x1024xf32>, vector<1x1024xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x1024xf32> to vector<1xf32>
    ```
    becomes
    ```mlir
    gpu.func @f_0_kernel(%x: memref<?x1024xf32>, ...) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>, ...} {
      %0 = vector.load %x[%block, %column] {alignment = 16} : memref<?x1024xf32>, vector<4xf32>
      ...
      %s, %valid = gpu.shuffle xor %r, %distance, %width : f32
    ```
    """

    name: ClassVar[str] = "fuse-distribute"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in list(kernels(module)):
            if not is_tile_program(kernel):
                remarks.declined(self, "not a tile program", kernel)
                continue
            layouts = layouts_of(kernel)
            if not layouts:
                raise PassError("no op has a layout", where=kernel, hint="run fuse-assign-layouts first")
            layout = layouts[0]
            if any((other.threads, other.cluster) != (layout.threads, layout.cluster) for other in layouts):
                raise PassError("the kernel's layouts differ in their number of threads", where=kernel)
            function = _distribute(module, kernel, layout)
            erase(kernel)
            remarks.applied(self, f"{layout.threads} threads a block, cluster of {layout.cluster}", function)


def _cluster(kernel: ir.Operation, layout: BlockedLayout) -> int:
    """Number of blocks of a cluster; the blocks share a tile, or have neighbouring tiles."""
    return ir.IntegerAttr(kernel.attributes[CLUSTER]).value if CLUSTER in kernel.attributes else layout.cluster


def _distribute(module: ir.Operation, kernel: ir.Operation, layout: BlockedLayout) -> ir.OpView:
    name = symbol(kernel)
    module.attributes["gpu.container_module"] = ir.UnitAttr.get()
    forall = next(op for op in body(kernel) if op.name == "scf.forall")
    with ir.InsertionPoint(kernel), kernel.location:
        gpu_module = gpu.GPUModuleOp(ir.StringAttr.get(name))
        module_block = gpu_module.operation.regions[0].blocks.append()
    kernel_type = ir.TypeAttr(kernel.attributes["function_type"]).value
    with ir.InsertionPoint(module_block), kernel.location:
        function = gpu.GPUFuncOp(
            ir.TypeAttr.get(kernel_type), name, kernel=True, known_block_size=[layout.threads, 1, 1]
        )
        if "arg_attrs" in kernel.attributes:
            function.operation.attributes["arg_attrs"] = kernel.attributes["arg_attrs"]
        block = function.add_entry_block()
    set_grid(function.operation, kernel, forall, layout.cluster)
    if (cluster := _cluster(kernel, layout)) > 1:
        function.operation.attributes["known_cluster_size"] = ir.DenseI32ArrayAttr.get([cluster, 1, 1])
    for name in (COOPERATIVE, EQUAL_EXTENTS):
        if name in kernel.attributes:
            function.operation.attributes[name] = kernel.attributes[name]
    if blocks := schedule_of(kernel).blocks_per_sm:
        i32 = ir.IntegerType.get_signless(32)
        function.operation.attributes[LEAST_BLOCKS] = ir.IntegerAttr.get(i32, blocks)

    scalars = dict(zip(kernel.regions[0].blocks[0].arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block), kernel.location:
        d = Distributor(
            layout,
            function,
            scalars,
            depth_first=schedule_of(kernel).order == "depth",
            shared_spill=schedule_of(kernel).shared_spill,
            in_order=schedule_of(kernel).in_order,
            rematerialize_addresses=schedule_of(kernel).rematerialize_addresses,
        )
        attributes = argument_attributes(kernel)
        d.argument_attributes = dict(zip(block.arguments, attributes, strict=False))
        if layout.cluster > 1:
            # A block may write into another one's shared memory only once that block runs.
            d.start_barrier = cluster_barrier()
        bound = device_bound(kernel, forall)
        for op in body(kernel)[:-1]:
            if bound is not None and op == bound:
                scalars[op.results[0]] = divide(gpu.GridDimOp(gpu.Dimension.x).result, layout.cluster)
                continue
            if op != forall:
                if op.name != RESIDENT_BLOCKS and not is_least(op):
                    d.distribute(op)
                continue
            scalars[forall.regions[0].blocks[0].arguments[0]] = divide(
                gpu.BlockIdOp(gpu.Dimension.x).result, layout.cluster
            )
            d.distribute_all([inner.operation for inner in forall.regions[0].blocks[0].operations][:-1])
        d.emit_deferred()
        gpu.ReturnOp([])
    if d.depth_first:
        _order_reads(function.operation)
    return function


def _order_reads(function: ir.Operation) -> None:
    """Marks the arguments that many blocks read: their loads must stay next to the uses of the fragments.

    The compiler moves loads through the read-only path to the top of the kernel, where they take the registers that
    depth-first order saves.
    """
    attributes = []
    for argument, known in zip(function.regions[0].blocks[0].arguments, argument_attributes(function), strict=False):
        loads = [u.owner.operation for u in argument.uses if u.owner.operation.name in ("vector.load", "memref.load")]
        if any("nontemporal" not in load.attributes for load in loads):
            known = {**known, ORDERED: ir.UnitAttr.get()}
        attributes.append(ir.DictAttr.get(known))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)

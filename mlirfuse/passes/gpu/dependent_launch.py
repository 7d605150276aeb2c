"""`fuse-dependent-launch`: kernels may start before their predecessor in the stream has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import nvvm

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.memory.global_memory import touches_global_memory
from mlirfuse.dialect.attributes import DEPENDENT_LAUNCH
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import nested


@dataclass(frozen=True)
class FuseDependentLaunch(Pass):
    """Makes kernels wait for their predecessor in the stream themselves, and marks them for the launcher.

    Requires the gpu stage. The launch and everything before the first access to global memory (indices, mbarriers) then
    overlap with the end of the predecessor: programmatic dependent launch (CUDA Programming Guide). The wait
    (`griddepcontrol.wait`) comes before the first op of the body that has global memory in it, for every thread of
    every block. It ends when the predecessor is complete and its writes are visible, and a block that has not waited
    does not end; so a kernel that has waited for one has waited for all. `lower-kernel-abi` keeps the loads of a marked
    kernel off the read-only path, on which they could be moved above the wait. `fuse-launch-dependents` chooses where a
    kernel triggers the launch of its successor.

    ```mlir
    gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<?xf32>
    ```
    becomes
    ```mlir
    gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {fuse.dependent_launch} {
      %t = gpu.thread_id x
      nvvm.griddepcontrol wait
      %v = memref.load %x[%t] : memref<?xf32>
    ```

    Architectures before sm_90 have no such launch.
    """

    name: ClassVar[str] = "fuse-dependent-launch"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        for kernel in gpu_kernels(module):
            if DEPENDENT_LAUNCH in kernel.attributes:
                continue
            if not target.has_dependent_launch:
                remarks.declined(self, f"{target.chip} has no programmatic dependent launch", kernel)
                continue
            first = _first_access(kernel)
            if first is None:
                remarks.declined(self, "the kernel touches no global memory", kernel)
                continue
            with ir.InsertionPoint(first), first.location:
                nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
            kernel.attributes[DEPENDENT_LAUNCH] = ir.UnitAttr.get()
            remarks.applied(self, f"{symbol(kernel)} waits for its predecessor before {first.name}", first)


def _first_access(kernel: ir.Operation) -> ir.Operation | None:
    """The first op of a kernel's body that touches global memory, or has an op in it that does."""
    for op in kernel.regions[0].blocks[0].operations:
        if any(map(touches_global_memory, nested(op.operation))):
            return op.operation
    return None

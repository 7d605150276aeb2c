"""`fuse-resolve-scatters`: stores to scattered views become stores to their buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.dialect.gathered_view import gather_of
from mlirfuse.dialect.scattered import DEFINITION
from mlirfuse.distribution.threads.guard import Guard
from mlirfuse.errors import PassError
from mlirfuse.passes.gpu.view_indices import erase_transposes, place_of, users_of, with_unit_last
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named

STORES = ("memref.store", "vector.store")


@dataclass(frozen=True)
class FuseResolveScatters(Pass):
    """Makes one thread's stores to a `fuse.scattered` view address the view's buffer.

    Requires the gpu stage. The index in the view is divided into components, which the map takes to an index of the
    buffer. Where that index can be out of bounds, the store is in a branch. Components, checks and divisions that the
    extents make superfluous are not emitted. A store of several elements stays inside one contiguous run of the buffer,
    which the view's strides promise. Raises `PassError` for an op that does anything else with the view.

    ```mlir
    %view = "fuse.scattered"(%y) {map = affine_map<(a, h, c) -> (h * 2 + a, c)>, ...}
        : (memref<15x16xf16>) -> memref<2x8x16xf16, strided<[16, 16, 1]>>
    vector.store %v, %view[%a, %h, %c] {alignment = 16} : ..., vector<8xf16>
    ```
    becomes
    ```mlir
    %row = arith.addi (%h * 2), %a
    %inside = arith.cmpi ult, %row, 15
    scf.if %inside {
      vector.store %v, %y[%row, %c] {alignment = 16} : memref<15x16xf16>, vector<8xf16>
    }
    ```
    """

    name: ClassVar[str] = "fuse-resolve-scatters"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            views = ops_named(kernel, DEFINITION.full_name)
            resolved = sum(_resolve(view) for view in views)
            if views:
                remarks.applied(self, f"{resolved} stores of {symbol(kernel)} to {len(views)} scattered views", kernel)
            else:
                remarks.declined(self, "no scattered view", kernel)


def _resolve(view: ir.Operation) -> int:
    """Resolves the stores to a view, and erases the view; returns their number."""
    stores = users_of(view.results[0])
    for op, axes in stores:
        if op.name not in STORES or op.operands[0] == view.results[0]:
            raise PassError(f"{op.name} does not take a scattered view", where=op)
        with ir.InsertionPoint(op), op.location:
            _store(view, op, axes)
        erase(op)
    erase_transposes(view.results[0])
    erase(view)
    return len(stores)


def _store(view: ir.Operation, op: ir.Operation, axes: Sequence[int]) -> None:
    """Emits the store to the buffer in place of the op, which stores to the view; `axes` are the view's ones."""
    value, _, *index = op.operands
    buffer = view.operands[0]
    shape = ir.MemRefType(buffer.type).shape
    at, condition = place_of(gather_of(view.attributes), dict(zip(axes, index, strict=True)), shape)
    nontemporal = True if "nontemporal" in op.attributes else None
    with Guard(condition):
        if op.name == "memref.store":
            memref.StoreOp(value, buffer, at, nontemporal=nontemporal)
            return
        (width,) = ir.VectorType(value.type).shape
        target, at = with_unit_last(buffer, at, width)
        align = ir.IntegerAttr(op.attributes["alignment"]).value
        vector.StoreOp(value, target, at, nontemporal=nontemporal, alignment=align)

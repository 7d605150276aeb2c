"""`fuse-reshape-gathers`: reshapes of gathered views become gathered views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of, gathered_view
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseReshapeGathers(Pass):
    """Makes a reshape of a gathered view one view, as a kernel is passed the source of a view and not the view.

    Requires functions of tensor ops. Joined dimensions are numbered by the components of all, and a dimension that is
    divided has its parts for components (`Gather.reshaped`). Other reshapes are left alone.

    ```mlir
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 6, 10>, map = affine_map<(i, j) -> (i + 2, j)>, ...}
        : (tensor<8x10xf32>) -> tensor<6x10xf32>
    %pairs = tensor.expand_shape %view [[0, 1], [2]] output_shape [3, 2, 10] : ... into tensor<3x2x10xf32>
    ```
    becomes
    ```mlir
    %pairs = "fuse.gathered_view"(%x) {basis = array<i64: 3, 2, 10>, map = affine_map<(p, i, j) -> (p * 2 + i + 2, j)>,
        ...} : (tensor<8x10xf32>) -> tensor<3x2x10xf32>
    ```
    """

    name: ClassVar[str] = "fuse-reshape-gathers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            changed = []
            for op in [op for op in body(function) if op.name in RESHAPES]:
                view = defining_op(op.operands[0])
                if view is None or view.name != DEFINITION.full_name:
                    continue
                gather = gather_of(view.attributes).reshaped(ir.RankedTensorType(op.results[0].type).shape)
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(gathered_view(view.operands[0], gather))
                changed += [op, view]
            if not changed:
                remarks.declined(self, "no gathered view is reshaped", function)
                continue
            remarks.applied(self, f"{len(changed) // 2} reshapes of gathered views", function)
            erase_dead(list(dict.fromkeys(changed)))

"""`fuse-reshape-gathers`: reshapes of gathered views become gathered views."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

from mlir import ir
from mlir.dialects import tensor

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseReshapeGathers(Pass):
    """Makes a reshape of a gathered view one view, as a kernel is passed the source of a view and not the view.

    Requires functions of tensor ops. Joined dimensions are numbered by the components of all, and a dimension that is
    divided has its parts for components (`Gather.reshaped`). Where dimensions of a view number an axis of an array in
    memory as the digits of a number do, the axis is divided, and each dimension runs along one part; a view that then
    has all of the array's elements in order is the array. Other reshapes are left alone.

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
            divided = [op for op in body(function) if op.name == DEFINITION.full_name and _divide(op)]
            if not changed and not divided:
                remarks.declined(self, "no gathered view is reshaped", function)
                continue
            if changed:
                remarks.applied(self, f"{len(changed) // 2} reshapes of gathered views", function)
            if divided:
                remarks.applied(self, f"{len(divided)} gathered views of divided dimensions", function)
            erase_dead([op for op in body(function) if op in {*changed, *divided}])


def _divide(view: ir.Operation) -> bool:
    """Divides axes of a view's source that several dimensions number; returns whether there are any."""
    source, gather = view.operands[0], gather_of(view.attributes)
    if gather.inside or gather.joins_components or not _is_in_memory(source):
        return False
    shape = ir.RankedTensorType(source.type).shape
    axes = [_digits(expr, gather, extent) for expr, extent in zip(gather.map.results, shape, strict=True)]
    if all(dims is None or len(dims) < 2 for dims in axes):
        return False
    results, sizes = list[ir.AffineExpr](), list[list[int]]()
    for expr, dims, extent in zip(gather.map.results, axes, shape, strict=True):
        divides = dims is not None and len(dims) > 1
        results += [ir.AffineExpr.get_dim(d) for d in dims or ()] if divides else [expr]
        sizes.append([gather.shape[d] for d in dims or ()] if divides else [extent])
    ends = [0, *accumulate(map(len, sizes))]
    groups = [list(range(start, end)) for start, end in pairwise(ends)]
    flat = [n for group in sizes for n in group]
    with ir.InsertionPoint(view), view.location:
        type_ = ir.RankedTensorType.get(flat, ir.RankedTensorType(source.type).element_type)
        new = tensor.ExpandShapeOp(type_, source, groups, [], flat).result
        identity = [ir.AffineExpr.get_dim(d) for d in range(len(gather.shape))]
        if results != identity or flat != list(gather.shape):
            new = gathered_view(new, Gather(gather.basis, ir.AffineMap.get(len(identity), 0, results)))
    view.results[0].replace_all_uses_with(new)
    return True


def _digits(expr: ir.AffineExpr, gather: Gather, extent: int) -> list[int] | None:
    """The dimensions of a view that number an axis of that extent as digits do, the first one slowest; or None."""
    linear = coefficients(expr, len(gather.shape))
    if linear is None or linear[1]:
        return None
    dims = sorted((d for d, step in enumerate(linear[0]) if step and gather.shape[d] > 1), key=lambda d: -linear[0][d])
    step = 1
    for d in reversed(dims):
        if linear[0][d] != step:
            return None
        step *= gather.shape[d]
    return dims if step == extent else None


def _is_in_memory(value: ir.Value) -> bool:
    """Whether a value is an argument of the function, or a reshape of one."""
    op = defining_op(value)
    return op is None or (op.name in RESHAPES and _is_in_memory(op.operands[0]))

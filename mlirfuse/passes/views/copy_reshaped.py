"""`fuse-copy-reshaped`: copies arrays whose reshapes, or other views, the host cannot make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body, functions
from mlirfuse.analysis.loops.structure import is_constant
from mlirfuse.analysis.memory.host_views import Layout, is_host_view, view_layout, viewed
from mlirfuse.analysis.segments.segments import needs_memory
from mlirfuse.dialect.attributes import KERNEL, NAME
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passes.views.copies import copied
from mlirfuse.passes.views.views import fold_views
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.extents import extents_of
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase, erase_dead, integer_of


@dataclass(frozen=True)
class FuseCopyReshaped(Pass):
    """Copies each array in front of its reshapes that are no views.

    Requires host functions of tensor ops. Splitting a dimension is a view of any array. Merging dimensions is a view
    where each stride is the next extent times the next stride (`fuse.strides`), which transposes, slices and broadcasts
    change. Other reshapes read a contiguous copy, as in NumPy, which an elementwise op makes, and so do views of
    constants and of gathered views, which are not in memory. Extents of a reshape are those of what it is of, where
    these are some, so that nothing is copied for them alone. Kernels are left alone.

    ```mlir
    func.func @f(%x: tensor<4x8xf32> {fuse.strides = ["?", 1]}) -> ... {
      %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
      %1 = linalg.generic ... ins(%0 : tensor<32xf32>) ...
    ```
    becomes
    ```mlir
      %copy = linalg.generic ... ins(%x : tensor<4x8xf32>) ... {fuse.copied = -1 : i64} -> tensor<4x8xf32>
      %0 = tensor.collapse_shape %copy [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
      %1 = linalg.generic ... ins(%0 : tensor<32xf32>) ...
    ```
    """

    name: ClassVar[str] = "fuse-copy-reshaped"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if KERNEL in function.attributes or not body(function):
                continue
            arguments = function.regions[0].blocks[0].arguments
            layouts: dict[ir.Value, Layout] = dict(zip(arguments, argument_attributes(function), strict=True))
            copies: dict[ir.Value, ir.Value] = {}
            for op in reversed(body(function)):
                if op.name == "tensor.collapse_shape":
                    _read_extents_of_source(op)
            for op in body(function):
                if not is_host_view(op):
                    continue
                source = op.operands[0]
                is_lost = (is_constant(source) or _is_gathered(source)) and needs_memory(op)
                seen = None if is_lost else view_layout(op, layouts.get(source, {}))
                if seen is not None:
                    layouts[op.results[0]] = seen
                    continue
                if source not in copies:
                    copies[source] = copied(op, source)
                    what = _name(source, layouts)
                    why = "a view of it is no view of memory" if is_lost else "a reshape of it may be no view"
                    remarks.applied(self, f"copies {what}: {why}", op)
                    maker = defining_op(copies[source])
                    assert maker is not None
                    fold_views(maker)
                op.operands[0] = copies[source]
            erase_dead([op for op in body(function) if is_host_view(op)])


def _read_extents_of_source(collapse: ir.Operation) -> None:
    """Makes `tensor.dim` of a reshape one of its source, along dimensions that it merges with those of one element."""
    groups, source = reassociation(collapse), collapse.operands[0]
    shape = ir.RankedTensorType(source.type).shape
    for use in list(collapse.results[0].uses):
        dim = use.owner.operation
        axis = integer_of(dim.operands[1]) if dim.name == "tensor.dim" else None
        kept = [] if axis is None else [d for d in groups[axis] if shape[d] != 1]
        if len(kept) != 1:
            continue
        with ir.InsertionPoint(dim), dim.location:
            (extent,) = extents_of(source, kept)
        dim.results[0].replace_all_uses_with(extent)
        erase(dim)


def _is_gathered(value: ir.Value) -> bool:
    """Whether a value is a gathered view, or a view of one on the host, of which kernels read the source alone."""
    maker = defining_op(viewed(value))
    return maker is not None and maker.name == DEFINITION.full_name


def _name(value: ir.Value, layouts: dict[ir.Value, Layout]) -> str:
    """The user's name of the argument that a value is, or is a view of."""
    value = viewed(value)
    if defining_op(value) is not None:
        return "a result"
    name = layouts[value].get(NAME)
    return ir.StringAttr(name).value if name is not None else f"argument {ir.BlockArgument(value).arg_number}"

"""`fuse-copy-reshaped`: copies non-contiguous arguments whose reshapes are no views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body, functions
from mlirfuse.analysis.loops.structure import is_diagonal
from mlirfuse.analysis.memory.strided_views import diagonal_layout, reshaped_layout
from mlirfuse.analysis.segments import RESHAPES
from mlirfuse.dialect.attributes import KERNEL, NAME, STRIDES
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseCopyReshaped(Pass):
    """Copies each non-contiguous argument in front of its reshapes that are no views.

    Requires host functions of tensor ops. Splitting a dimension is a view of any array. Merging dimensions is a view
    where each stride is the next extent times the next stride (`fuse.strides`). Ops on other reshapes read a contiguous
    copy, as in NumPy, which an elementwise op makes. A reshape that is only returned stays, as the caller's framework
    makes it; kernels are left alone. Kernels read a diagonal in place if the strides of its operand have numbers; what
    else uses it, a reshape or the caller, gets a copy.

    ```mlir
    func.func @f(%x: tensor<4x8xf32> {fuse.strides = array<i64: -1, 1>}) -> ... {
      %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
      %1 = linalg.generic ... ins(%0 : tensor<32xf32>) ...
    ```
    becomes
    ```mlir
      %copy = linalg.generic ... ins(%x : tensor<4x8xf32>) ... -> tensor<4x8xf32>
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
            known = zip(function.regions[0].blocks[0].arguments, argument_attributes(function), strict=True)
            layouts = {argument: attributes for argument, attributes in known if STRIDES in attributes}
            copies: dict[ir.Value, ir.Value] = {}
            for op in body(function):
                self._copy_diagonals(op, layouts, remarks)
                if op.name not in RESHAPES or op.operands[0] not in layouts:
                    continue
                source = op.operands[0]
                seen = reshaped_layout(op, layouts[source])
                if seen is not None:
                    layouts[op.results[0]] = layouts[source] | seen
                elif not _is_only_returned(op):
                    if source not in copies:
                        copies[source] = _copied(op, source)
                        remarks.applied(self, f"copies {_name(source, layouts)}: a reshape of it may be no view", op)
                    op.operands[0] = copies[source]

    def _copy_diagonals(
        self, op: ir.Operation, layouts: dict[ir.Value, dict[str, ir.Attribute]], remarks: Remarks
    ) -> None:
        """Copies what an op cannot use as a view: a diagonal that is reshaped, transposed or returned, and an array of
        unknown strides of which it is a diagonal.
        """
        if is_diagonal(op):
            source = op.operands[0]
            maker = defining_op(source)
            is_view = maker is None or not (is_diagonal(maker) or maker.name == "linalg.transpose")
            if not is_view or diagonal_layout(op, layouts.get(source, {})) is None:
                op.operands[0] = _copied(op, source)
                remarks.applied(self, "copies an array: a diagonal of it has no known strides", op)
            return
        if op.name not in (*RESHAPES, "linalg.transpose", "func.return"):
            return
        for number, operand in enumerate(op.operands):
            maker = defining_op(operand)
            if maker is not None and is_diagonal(maker):
                op.operands[number] = _copied(op, operand)
                remarks.applied(self, "copies a diagonal", op)


def _is_only_returned(op: ir.Operation) -> bool:
    """Whether a reshape, through transposes and further reshapes, is only returned."""
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.name == "func.return":
            continue
        if user.name not in RESHAPES or not _is_only_returned(user):
            return False
    return True


def _name(value: ir.Value, layouts: dict[ir.Value, dict[str, ir.Attribute]]) -> str:
    """The user's name of the argument that a value is, or is a view of."""
    name = layouts[value].get(NAME)
    if name is not None:
        return ir.StringAttr(name).value
    while (maker := defining_op(value)) is not None:
        value = maker.operands[0]
    return f"argument {ir.BlockArgument(value).arg_number}"


def _copied(reshape: ir.Operation, source: ir.Value) -> ir.Value:
    """A contiguous copy of a tensor, made in front of the first reshape that needs it."""
    type_ = ir.RankedTensorType(source.type)
    with ir.InsertionPoint(reshape), reshape.location:
        sizes = [
            tensor.DimOp(source, arith.ConstantOp(ir.IndexType.get(), d).result).result
            if type_.is_dynamic_dim(d)
            else type_.get_dim_size(d)
            for d in range(type_.rank)
        ]
        init = tensor.EmptyOp(sizes, type_.element_type).result
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        maps, kinds = ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * type_.rank)
        copy = linalg.GenericOp([type_], [source], [init], maps, kinds)
        block = copy.regions[0].blocks.append(*[type_.element_type] * 2, arg_locs=[copy.location] * 2)
        with ir.InsertionPoint(block):
            linalg.YieldOp([block.arguments[0]])
    return copy.results[0]

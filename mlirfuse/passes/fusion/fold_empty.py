"""`fuse-fold-empty`: removes computations on tensors without elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.kernels import body, functions
from mlirfuse.dialect.attributes import GRID_REDUCTION, KERNEL, MIX_ORDER, SCHEDULES
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase_dead, integer_of

DYNAMIC = ir.ShapedType.get_dynamic_size()
RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")


@dataclass(frozen=True)
class FuseFoldEmpty(Pass):
    """Replaces values with a static extent of 0, and reductions over no elements.

    Requires functions of linalg and tensor ops on tensors; kernels are left alone. A linalg op with an empty operand
    has no iterations, so that its results are its inits: a sum becomes an op that writes the initial zeros and reads
    nothing. An empty reshape becomes a `tensor.empty`, and `tensor.dim` of an empty tensor the extent that it was made
    with. Schedules and other requests of the user for the removed kernels are dropped. No later pass sees an op on an
    extent of 0; the host returns a `tensor.empty` as an array that no kernel writes.

    ```mlir
    %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic ... ins(%x : tensor<0x8xf32>) outs(%zeros : tensor<8xf32>) ...
    ```
    becomes
    ```mlir
    %sum = linalg.generic ... outs(%e : tensor<8xf32>) { ^bb0(%o: f32): linalg.yield %zero : f32 }
    ```
    """

    name: ClassVar[str] = "fuse-fold-empty"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place; raises `PassError` for a joint reduction over no elements."""
        for function in functions(module):
            ops = body(function)
            if not ops or KERNEL in function.attributes:
                continue
            folded = sum(_fold(op) for op in ops)
            if not folded:
                remarks.declined(self, "every tensor has elements", function)
                continue
            erase_dead([op for op in body(function) if op.results])
            for request in (SCHEDULES, MIX_ORDER, GRID_REDUCTION):
                if request in function.attributes:
                    remarks.declined(self, f"{request} is ignored: tensors without elements need no kernel", function)
                    del function.attributes[request]
            remarks.applied(self, f"{folded} ops without elements", function)


def is_empty(type_: ir.Type) -> bool:
    """Whether a static extent of 0 leaves a tensor without elements."""
    return isinstance(type_, ir.RankedTensorType) and 0 in type_.shape


def _fold(op: ir.Operation) -> bool:
    """Replaces the results of an op that has nothing to do; returns whether it did."""
    if op.name == "tensor.dim":
        return _fold_dim(op)
    if not any(is_empty(operand.type) for operand in op.operands):
        return False
    if op.name.startswith("linalg."):
        inits = list(op.operands)[len(op.operands) - len(op.results) :]
        for result, init in zip(op.results, inits, strict=True):
            result.replace_all_uses_with(init if is_empty(init.type) else _start(init, op))
        return True
    if op.name in RESHAPES:
        op.results[0].replace_all_uses_with(_reshaped(op))
        return True
    if op.name in JOINT_REDUCTIONS:
        raise PassError(f"{op.name} of a tensor without elements", where=op, hint="reduce it by linalg.generic")
    return False


def _start(init: ir.Value, op: ir.Operation) -> ir.Value:
    """The result of a reduction over no elements: its init, or an op that writes the init of a `linalg.fill`.

    Kernels repeat a fill for each use, and none of them returns one.
    """
    fill = defining_op(init)
    if fill is None or fill.name != "linalg.fill":
        return init
    number, empty = fill.operands
    rank = ir.RankedTensorType(empty.type).rank
    maps = ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))])
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
    with ir.InsertionPoint(op), op.location:
        made = linalg.GenericOp([init.type], [], [empty], maps, kinds)
    block = made.regions[0].blocks.append(number.type, arg_locs=[op.location])
    constant = defining_op(number)
    with ir.InsertionPoint(block), op.location:
        if constant is not None and constant.name == "arith.constant":
            number = constant.clone().results[0]
        linalg.YieldOp([number])
    return made.results[0]


def _fold_dim(op: ir.Operation) -> bool:
    """Replaces a `tensor.dim` of an empty tensor by a constant, or by the operand of its `tensor.empty`."""
    made, axis = defining_op(op.operands[0]), integer_of(op.operands[1])
    if made is None or made.name != "tensor.empty" or not is_empty(op.operands[0].type) or axis is None:
        return False
    type_ = ir.RankedTensorType(op.operands[0].type)
    if type_.is_dynamic_dim(axis):
        extent = made.operands[sum(type_.is_dynamic_dim(before) for before in range(axis))]
    else:
        with ir.InsertionPoint(op), op.location:
            extent = arith.ConstantOp(ir.IndexType.get(), type_.shape[axis]).result
    op.results[0].replace_all_uses_with(extent)
    return True


def _reshaped(op: ir.Operation) -> ir.Value:
    """A `tensor.empty` of a reshape's result."""
    type_ = ir.RankedTensorType(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        if op.name == "tensor.expand_shape":
            sizes = iter(list(op.operands)[1:])
            shape = [next(sizes) if extent == DYNAMIC else extent for extent in type_.shape]
        else:
            groups = reassociation(op)
            shape = [
                _element_count(op.operands[0], group) if extent == DYNAMIC else extent
                for group, extent in zip(groups, type_.shape, strict=True)
            ]
        return tensor.EmptyOp(shape, type_.element_type).result


def _element_count(source: ir.Value, dims: list[int]) -> ir.Value:
    """The number of elements along some dimensions of a tensor, as an index at the current insertion point."""
    index, extents = ir.IndexType.get(), ir.RankedTensorType(source.type).shape
    count = arith.ConstantOp(index, 1).result
    for dim in dims:
        number = arith.ConstantOp(index, dim if extents[dim] == DYNAMIC else extents[dim]).result
        extent = tensor.DimOp(source, number).result if extents[dim] == DYNAMIC else number
        count = arith.MulIOp(count, extent).result
    return count

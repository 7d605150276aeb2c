"""Sources of the dynamic extents of tensors that the ops of a function produce."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir
from mlir.dialects import arith, tensor

from mlirfuse.analysis.kernels import body, functions, result_sources, symbol
from mlirfuse.analysis.loops.structure import is_unit_reshape, structure_of
from mlirfuse.passes.kernels.host import callee
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import clone, defining_op, integer_of, nested, read_values

_DYNAMIC = ir.ShapedType.get_dynamic_size()

_WITH_INIT = ("linalg.generic", "linalg.fill", "linalg.transpose")


def read_extents_of_inputs(function: ir.Operation) -> None:
    """Rewrites every `tensor.dim` of an op's results, and the sizes of unit reshapes, to extents of the op's inputs.

    Kernels take no index that the host computed, and a value that is used only for its extent need not be stored.
    """
    for op in body(function):
        if op.name == "tensor.dim":
            axis = integer_of(op.operands[1])
            extent = None if axis is None else _extent(op.operands[0], axis, op)
            if extent is not None:
                op.results[0].replace_all_uses_with(extent)
        elif op.name == "tensor.expand_shape" and is_unit_reshape(op):
            shape = ir.RankedTensorType(op.results[0].type)
            dynamic = [axis for axis in range(shape.rank) if shape.is_dynamic_dim(axis)]
            for number, axis in enumerate(dynamic, start=1):
                op.operands[number] = _source_extent(op, axis, op)


def sink_index_arithmetic(function: ir.Operation) -> None:
    """Repeats index arithmetic on extents in every body that uses it; `cse` shares it with the sizes of views.

    Kernels take no index that the host computed. Only the sizes of the host's views stay outside of bodies.
    """
    for op in body(function):
        for region in op.regions:
            for block in region.blocks:
                with ir.InsertionPoint.at_block_begin(block), op.location:
                    _compute_inside(op)


def _compute_inside(op: ir.Operation) -> None:
    """Repeats at the insertion point, in an op's block, the index arithmetic that the op reads from outside."""
    inside: dict[ir.Value, ir.Value] = {}

    def repeat(value: ir.Value) -> None:
        maker = defining_op(value)
        if value in inside or maker is None or not _is_index_arithmetic(maker):
            return
        for operand in maker.operands:
            repeat(operand)
        clone(maker, inside)

    for value in read_values(op):
        if value not in list(op.operands):
            repeat(value)
    for inner in nested(op)[1:]:
        for number, operand in enumerate(inner.operands):
            if operand in inside:
                inner.operands[number] = inside[operand]


def _is_index_arithmetic(op: ir.Operation) -> bool:
    """Whether an op computes an index from others."""
    return op.name.startswith("arith.") and bool(op.operands) and isinstance(op.results[0].type, ir.IndexType)


def sources_of_extent(value: ir.Value, axis: int) -> tuple[tuple[int, int], ...]:
    """The (argument, dimension) pairs of the function that one extent of a value is the product of.

    Args:
        value: a tensor of a host function.
        axis: the dimension of it; a static one has no sources.

    Returns:
        (argument, dimension) pairs without repetition; empty where an op in between has no known relation between its
        extents.
    """
    return tuple(dict.fromkeys(_extent_sources(value, axis)))


def _extent_sources(value: ir.Value, axis: int) -> Iterator[tuple[int, int]]:
    type_ = ir.RankedTensorType(value.type)
    if not type_.is_dynamic_dim(axis):
        return
    maker = defining_op(value)
    number = sum(type_.is_dynamic_dim(before) for before in range(axis))
    if maker is None:
        yield ir.BlockArgument(value).arg_number, axis
    elif maker.name in _WITH_INIT:
        init = maker.operands[len(maker.operands) - len(maker.results) + ir.OpResult(value).result_number]
        yield from _extent_sources(init, axis)
    elif maker.name == "tensor.empty":
        yield from _index_sources(maker.operands[number])
    elif maker.name == "tensor.expand_shape":
        yield from _index_sources(maker.operands[1 + number])
    elif maker.name == "tensor.collapse_shape":
        groups = reassociation(maker)
        for merged in groups[axis]:
            yield from _extent_sources(maker.operands[0], merged)
    elif maker.name == "func.call":
        before = list(maker.results)[: ir.OpResult(value).result_number]
        number += sum(ir.RankedTensorType(r.type).shape.count(_DYNAMIC) for r in before)
        argument, dim = result_sources(_called(maker))[number]
        yield from _extent_sources(maker.operands[argument], dim)


def _called(call: ir.Operation) -> ir.Operation:
    """The kernel function that a host function calls."""
    module = call.parent.operation.parent.operation
    return next(f for f in functions(module) if symbol(f) == callee(call))


def _index_sources(index: ir.Value) -> Iterator[tuple[int, int]]:
    maker = defining_op(index)
    if maker is None:
        return
    if maker.name == "tensor.dim":
        axis = integer_of(maker.operands[1])
        if axis is not None:
            yield from _extent_sources(maker.operands[0], axis)
    elif _is_index_arithmetic(maker):
        for operand in maker.operands:
            yield from _index_sources(operand)


def _extent(value: ir.Value, axis: int, user: ir.Operation) -> ir.Value | None:
    """An extent of a value as an index in front of its user; None where it stays a `tensor.dim` of the value."""
    maker = defining_op(value)
    if maker is None or not ir.RankedTensorType(value.type).is_dynamic_dim(axis):
        return None
    if maker.name in _WITH_INIT:
        init = maker.operands[len(maker.operands) - len(maker.results) + ir.OpResult(value).result_number]
        return _extent(init, axis, user) or _dim(init, axis, user)
    if maker.name == "tensor.empty":
        type_ = ir.RankedTensorType(value.type)
        return maker.operands[sum(type_.is_dynamic_dim(before) for before in range(axis))]
    return _source_extent(maker, axis, user) if is_unit_reshape(maker) else None


def _source_extent(reshape: ir.Operation, axis: int, user: ir.Operation) -> ir.Value:
    """The extent along an axis of a unit reshape's result, which is one of its source."""
    structure = structure_of(reshape)
    assert structure is not None
    source_axes = structure.operand_axes[0]
    assert source_axes is not None
    source, number = reshape.operands[0], source_axes.index(structure.result_axes[0][axis])
    return _extent(source, number, user) or _dim(source, number, user)


def _dim(value: ir.Value, axis: int, user: ir.Operation) -> ir.Value:
    """`tensor.dim` in front of an op."""
    with ir.InsertionPoint(user), user.location:
        return tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), axis).result).result

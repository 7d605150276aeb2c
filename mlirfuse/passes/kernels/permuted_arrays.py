"""Permuted arguments and results of tensor kernels, and kernels that copy an array to another order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import func, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.dialect.attributes import KERNEL, OPERATION, RESULT_EXTENTS
from mlirfuse.support.extents import extents_of
from mlirfuse.support.rewriting import defining_op, erase_dead
from mlirfuse.tiling.kernel_signature import default_attributes, set_type


def permute_argument(kernel: ir.Operation, argument: int, order: Sequence[int]) -> None:
    """Makes a kernel take an argument with permuted axes, C-contiguous: axis i is axis `order[i]` of before."""
    value = kernel.regions[0].blocks[0].arguments[argument]
    for use in list(value.uses):
        _permute_map(use.owner.operation, use.operand_number, order)
    value.set_type(permuted(value.type, order))
    set_type(kernel)
    attributes = argument_attributes(kernel)
    attributes[argument] = default_attributes()
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])


def may_permute_result(kernel: ir.Operation, number: int = 0) -> bool:
    """Whether all results of a kernel have static extents, and a `linalg.generic` computes one for the return alone."""
    returned = list(body(kernel)[-1].operands)
    if not all(ir.RankedTensorType(value.type).has_static_shape for value in returned):
        return False
    return is_computed_to_return(returned[number])


def is_computed_to_return(result: ir.Value) -> bool:
    """Whether a `linalg.generic` computes a result for the return alone."""
    return _is_computed(result) and len(list(result.uses)) == 1


def order_of_source(result: ir.Value) -> list[int] | None:
    """The axis of a result, for which `is_computed_to_return` holds, for each axis of what it is computed from in
    another order; None where that has its order.
    """
    for value in [result, *_in_its_order(result)]:
        maker = defining_op(value)
        assert maker is not None
        *inputs, own = [projected_axes(map_) for map_ in ir.ArrayAttr(maker.attributes["indexing_maps"])]
        for axes in inputs:
            if axes != own and len(axes) == len(own) and set(axes) == set(own):
                return [own.index(loop) for loop in axes]
    return None


def permute_result(kernel: ir.Operation, order: Sequence[int], number: int = 0) -> None:
    """Makes a kernel return a result, for which `is_computed_to_return` holds, with permuted axes.

    What the kernel computes it from in the same order, such as the product that it rounds, is permuted as well, so that
    dimensions that are neighbours in the result are so everywhere.
    """
    result = body(kernel)[-1].operands[number]
    for value in [result, *_in_its_order(result)]:
        _permute_value(value, order)
    set_type(kernel)


def _in_its_order(result: ir.Value) -> list[ir.Value]:
    """The values of a kernel with the axes of its result that only `linalg.generic`s compute and read."""
    found: list[ir.Value] = []
    open_ = [result]
    while open_:
        maker = defining_op(open_.pop())
        assert maker is not None
        *inputs, own = list(ir.ArrayAttr(maker.attributes["indexing_maps"]))
        for operand, map_ in zip(maker.operands, inputs, strict=False):
            if map_ == own and operand not in found and _is_inside(operand):
                found.append(operand)
                open_.append(operand)
    return found


def _is_inside(value: ir.Value) -> bool:
    """Whether only `linalg.generic`s compute and read a value, by projections, and none starts from it."""
    return _is_computed(value) and all(_may_permute_read(u.owner.operation, u.operand_number) for u in value.uses)


def _may_permute_read(op: ir.Operation, operand: int) -> bool:
    if op.name != "linalg.generic" or operand == len(op.operands) - 1:
        return False
    return bool(ir.ArrayAttr(op.attributes["indexing_maps"])[operand].value.is_projected_permutation)


def _is_computed(value: ir.Value) -> bool:
    """Whether a `linalg.generic` computes a value alone, from nothing or from one number."""
    maker = defining_op(value)
    if maker is None or maker.name != "linalg.generic" or len(maker.results) != 1:
        return False
    init = defining_op(maker.operands[len(maker.operands) - 1])
    return init is not None and init.name in ("tensor.empty", "linalg.fill")


def _permute_value(value: ir.Value, order: Sequence[int]) -> None:
    """Has the `linalg.generic` that computes a value write it, and those that read it read it, with permuted axes."""
    maker = defining_op(value)
    assert maker is not None
    number = len(maker.operands) - 1
    init = defining_op(maker.operands[number])
    assert init is not None
    filled = defining_op(init.operands[1]) if init.name == "linalg.fill" else None
    type_, extents = permuted(value.type, order), _extents_of_empty(init if filled is None else filled)
    with ir.InsertionPoint(maker), maker.location:
        start = tensor.EmptyOp([extents[axis] for axis in order], type_.element_type).result
        if filled is not None:
            start = linalg.fill(init.operands[0], outs=[start])
    _permute_map(maker, number, order)
    maker.operands[number] = start
    for use in list(value.uses):
        if use.owner.operation.name == "linalg.generic":
            _permute_map(use.owner.operation, use.operand_number, order)
    value.set_type(type_)
    erase_dead([init] if filled is None else [filled, init])


def _extents_of_empty(empty: ir.Operation) -> list[int | ir.Value]:
    """The extents that a `tensor.empty` is made with."""
    type_, dynamic = ir.RankedTensorType(empty.results[0].type), iter(empty.operands)
    return [next(dynamic) if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank)]


def copy_kernel(
    kernel: ir.Operation, source: ir.Type, order: Sequence[int], name: str, attributes: dict[str, ir.Attribute]
) -> ir.Operation:
    """A kernel, inserted before another one, that copies an array into a permuted order of axes.

    Args:
        kernel: the other kernel, whose location and operation the copy has.
        source: the array's type.
        order: the source's axis for each axis of the copy.
        name: the new kernel's symbol.
        attributes: of the argument.
    """
    result, rank = permuted(source, order), len(order)
    element = result.element_type
    with ir.InsertionPoint(kernel), kernel.location:
        made = func.FuncOp(name, ir.FunctionType.get([source], [result]), visibility="private")
        made.attributes[KERNEL] = ir.UnitAttr.get()
        dynamic = [axis for axis in order if ir.RankedTensorType(source).is_dynamic_dim(axis)]
        made.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([n for axis in dynamic for n in (0, axis)])
        made.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes)])
        block = made.add_entry_block()
        with ir.InsertionPoint(block):
            init = tensor.EmptyOp(extents_of(block.arguments[0], order), element).result
            loops = [list(order).index(axis) for axis in range(rank)]
            maps = ir.ArrayAttr.get([projection(rank, loops), projection(rank, list(range(rank)))])
            kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
            copy = linalg.GenericOp([result], [block.arguments[0]], [init], maps, kinds)
            inner = copy.regions[0].blocks.append(*[element] * 2, arg_locs=[copy.location] * 2)
            with ir.InsertionPoint(inner):
                linalg.YieldOp([inner.arguments[0]])
            func.ReturnOp([copy.results[0]])
        operation = body(kernel)[0].attributes
        if OPERATION in operation:
            copy.attributes[OPERATION] = operation[OPERATION]
    return made.operation


def permuted(type_: ir.Type, order: Sequence[int]) -> ir.RankedTensorType:
    """A tensor type with axis `order[i]` as axis i."""
    source = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get([source.shape[axis] for axis in order], source.element_type)


def _permute_map(op: ir.Operation, number: int, order: Sequence[int]) -> None:
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    axes = projected_axes(maps[number])
    maps[number] = projection(maps[number].value.n_dims, [axes[axis] for axis in order])
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)

"""Changes the arguments and results of a tensor kernel, together with its call."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.kernels import body, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.dialect.attributes import ALIGN, RESULT_EXTENTS
from mlirfuse.errors import PassError
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT
from mlirfuse.support.rewriting import erase, erase_dead


def change_signature(
    call: ir.Operation,
    kernel: ir.Operation,
    operands: Sequence[ir.Value],
    attributes: Sequence[dict[str, ir.Attribute]],
    returned: Sequence[ir.Value],
) -> ir.Operation:
    """Changes a kernel's results, erases its unused ops and arguments, and replaces its call.

    Args:
        call: the kernel's only call, which is erased; results that are no longer returned must not have uses.
        kernel: the kernel; its block's arguments may differ from its function type.
        operands: the call operand of each block argument.
        attributes: the attributes of each of these arguments.
        returned: values of the kernel, its new results.

    Returns:
        The new call.

    Raises:
        PassError: a dynamic extent of a result is not the extent of any argument.
    """
    block = kernel.regions[0].blocks[0]
    *_, terminator = body(kernel)
    before = list(zip(terminator.operands, call.results, strict=True))
    with ir.InsertionPoint(terminator), terminator.location:
        func.ReturnOp(list(returned))
    erase(terminator)
    erase_dead(body(kernel)[:-1])
    used = [number for number, argument in enumerate(block.arguments) if list(argument.uses)]
    for number in reversed(range(len(block.arguments))):
        if number not in used:
            block.erase_argument(number)
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes[number]) for number in used])
    renew_type(kernel)
    with ir.InsertionPoint(call), call.location:
        new = func.CallOp([v.type for v in returned], symbol(kernel), [operands[number] for number in used])
    results = dict(zip(returned, new.results, strict=True))
    for value, result in before:
        if value in results:
            result.replace_all_uses_with(results[value])
    erase(call)
    return new.operation


def set_type(kernel: ir.Operation) -> None:
    """Gives a kernel the type of what its body takes and returns."""
    arguments, returned = kernel.regions[0].blocks[0].arguments, body(kernel)[-1].operands
    kernel_type = ir.FunctionType.get([a.type for a in arguments], [v.type for v in returned])
    kernel.attributes["function_type"] = ir.TypeAttr.get(kernel_type)


def renew_type(kernel: ir.Operation) -> None:
    """Gives a kernel the type, and the extents of results, of what its body takes and returns.

    Raises:
        PassError: a dynamic extent of a result is not the extent of any argument.
        ScheduleError: its ops share no iteration space.
    """
    set_type(kernel)
    arguments, returned = list(kernel.regions[0].blocks[0].arguments), list(body(kernel)[-1].operands)
    extents = result_extents(kernel_space(kernel)[0], arguments, returned, kernel)
    kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(extents)


def default_attributes() -> dict[str, ir.Attribute]:
    """The attributes of an argument that holds another kernel's result, which is a freshly allocated array."""
    return {ALIGN: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), DEFAULT_ALIGNMENT)}


def result_extents(
    space: IterationSpace, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], where: ir.Operation
) -> list[int]:
    """The (input, axis) pairs that the outputs' dynamic extents equal, flattened in order.

    Raises `PassError` if a dynamic extent is not the extent of any input.
    """
    sources = {
        dim: (inputs.index(op.operands[number]), axis)
        for (op, number), axes in space.use_axes.items()
        if op.operands[number] in inputs
        for axis, dim in enumerate(axes)
        if dim is not None
    }
    pairs: list[int] = []
    for value in outputs:
        shape = ir.RankedTensorType(value.type)
        for axis, dim in enumerate(space.value_axes[value]):
            if not shape.is_dynamic_dim(axis):
                continue
            if dim not in sources:
                raise PassError(
                    f"the dynamic extent of axis {axis} of a result of type {value.type} is none of an input's",
                    where=where,
                    hint="make the extent static",
                )
            pairs += sources[dim]
    return pairs

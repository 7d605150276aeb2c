"""What run-time extents are expected to be: of the values of a host function, and of the loops of a kernel.

The arguments of a function say so (`fuse.extent_hints`); views, sizes and the results of kernels follow from these.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, functions, result_sources, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.dialect.expected_extents import hints_of
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, integer_of

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.divsi": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.remsi": lambda a, b: a % b,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
}
_DIVIDES = ("div", "rem")


class HostExtents:
    """The expected extents of the values of a host function, each computed once.

    Args:
        function: a function of tensor ops, of views and of calls of kernels.
    """

    def __init__(self, function: ir.Operation):
        self._arguments = argument_attributes(function)
        self._declared = {symbol(f): f for f in functions(function.parent.operation)}
        self._known: dict[tuple[ir.Value, int], int | None] = {}

    def of(self, value: ir.Value) -> list[int | None]:
        """The extents of a tensor; None where nothing is expected."""
        return [self._extent(value, axis) for axis in range(ir.RankedTensorType(value.type).rank)]

    def _extent(self, value: ir.Value, axis: int) -> int | None:
        type_ = ir.RankedTensorType(value.type)
        if not type_.is_dynamic_dim(axis):
            return type_.get_dim_size(axis)
        if (value, axis) not in self._known:
            self._known[value, axis] = self._dynamic(value, axis)
        return self._known[value, axis]

    def _dynamic(self, value: ir.Value, axis: int) -> int | None:
        op = defining_op(value)
        type_ = ir.RankedTensorType(value.type)
        if op is None:
            number = ir.BlockArgument(value).arg_number
            return hints_of(self._arguments[number], type_.rank)[axis]
        number, place = sum(type_.is_dynamic_dim(d) for d in range(axis)), ir.OpResult(value).result_number
        match op.name:
            case "func.call":
                return self._of_call(op, place, number)
            case "tensor.empty":
                return self._index(op.operands[number])
            case "tensor.expand_shape":
                return self._index(op.operands[1 + number])
            case "tensor.extract_slice":
                counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
                return self._index(op.operands[counts[0] + counts[1] + number])
            case "tensor.collapse_shape":
                groups = reassociation(op)
                merged = [self._extent(op.operands[0], d) for d in groups[axis]]
                return None if None in merged else prod(extent or 1 for extent in merged)
            case name if name.startswith("linalg."):
                return self._extent(op.operands[len(op.operands) - len(op.results) + place], axis)
        return None

    def _of_call(self, call: ir.Operation, place: int, number: int) -> int | None:
        """The extent of a kernel's result: the argument's that it equals."""
        kernel = self._declared.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if kernel is None:
            return None
        before = [ir.RankedTensorType(result.type) for result in list(call.results)[:place]]
        number += sum(type_.is_dynamic_dim(d) for type_ in before for d in range(type_.rank))
        argument, dim = result_sources(kernel)[number]
        return self._extent(call.operands[argument], dim)

    def _index(self, value: ir.Value) -> int | None:
        number, op = integer_of(value), defining_op(value)
        if number is not None or op is None:
            return number
        if op.name == "tensor.dim":
            axis = integer_of(op.operands[1])
            return None if axis is None else self._extent(op.operands[0], axis)
        if op.name not in _ARITHMETIC:
            return None
        left, right = (self._index(operand) for operand in op.operands)
        if left is None or right is None or (not right and any(word in op.name for word in _DIVIDES)):
            return None
        return _ARITHMETIC[op.name](left, right)


def expected_extents(kernel: ir.Operation, space: IterationSpace) -> tuple[int | None, ...]:
    """What the dynamic dimensions of a kernel's iteration space are expected to be; None elsewhere.

    Args:
        kernel: a kernel on tensors, whose arguments may have `fuse.extent_hints`.
        space: its iteration space.
    """
    found: list[int | None] = [None] * space.rank
    if None not in space.extents:
        return tuple(found)
    arguments = list(kernel.regions[0].blocks[0].arguments)
    attributes = dict(zip(arguments, argument_attributes(kernel), strict=True))
    for (op, number), axes in space.use_axes.items():
        value = op.operands[number]
        if value not in attributes:
            continue
        for dim, extent in zip(axes, hints_of(attributes[value], len(axes)), strict=True):
            if dim is not None and space.extents[dim] is None and found[dim] is None:
                found[dim] = extent
    return tuple(found)

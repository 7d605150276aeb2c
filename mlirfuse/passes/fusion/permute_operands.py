"""`fuse-permute-operands`: copies operands of contractions into an order that tiles can be read in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from mlir import ir
from mlir.dialects import func, linalg, tensor

from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.contractions.contraction_operands import operand_of
from mlirfuse.analysis.contractions.problem import unit_axis
from mlirfuse.analysis.kernel_time import kernel_prediction
from mlirfuse.analysis.kernels import argument_attributes, body, functions, is_tile_program, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.dialect.attributes import BY_ROWS, KERNEL, OPERATION, RESULT_EXTENTS, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.kernels.host import calls, launches, order_host_ops
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.kernel_signature import default_attributes


@dataclass(frozen=True)
class FusePermuteOperands(Pass):
    """Reads an operand of a contraction from a copy in another order of dimensions, where that is predicted faster.

    Requires kernels on tensors of static extents, called by a host function. A candidate is an argument whose memory is
    contiguous along a dimension in which tiles have one element, so that each element of a tile lies in a sector of its
    own: a batch dimension that lies inside, or one of several summed dimensions. The copy has the summed dimensions in
    the order of the other operand, with which `fuse-collapse-dims` merges them, and is a kernel of its own. A
    contraction without such a copy may be predicted faster as a reduction over rows, as small ones are
    (`fuse.by_rows`); a remark has the times.

    ```mlir
    %y = call @f_0(%a, %b) : (tensor<4x8x512x512xbf16>, tensor<4x512x8x512xbf16>) -> ...   // bijk, bklj -> bli
    ```
    becomes
    ```mlir
    %c = call @f_0_operand1(%b) : (tensor<4x512x8x512xbf16>) -> tensor<4x8x512x512xbf16>   // bklj -> bljk
    %y = call @f_0(%a, %c) : (tensor<4x8x512x512xbf16>, tensor<4x8x512x512xbf16>) -> ...
    ```
    """

    name: ClassVar[str] = "fuse-permute-operands"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            for call, kernel in launches(module, function).items():
                if is_tile_program(kernel) or SCHEDULE in kernel.attributes:
                    continue
                for number in (0, 1):
                    self._permute(module, call, kernel, number, remarks)
            order_host_ops(function)

    def _permute(
        self, module: ir.Operation, call: ir.Operation, kernel: ir.Operation, number: int, remarks: Remarks
    ) -> None:
        """Permutes one operand of the contraction of a kernel, if there is one to permute and that is faster."""
        space, structures = kernel_space(kernel)
        contraction = contraction_in(space, structures)
        if contraction is None:
            return
        found = _candidate(kernel, space, contraction, number)
        if found is None:
            return
        if None in space.extents:
            remarks.declined(self, f"operand {number} of {symbol(kernel)} is read in place: an extent is dynamic", call)
            return
        argument, order = found
        copy = _copy_kernel(kernel, argument, order, f"{symbol(kernel)}_operand{number}")

        def permute(trial: ir.Operation) -> None:
            _permute_argument(trial, argument, order)

        in_place = _microseconds(kernel)
        by_rows = _microseconds(kernel, _reduce_by_rows)
        copied = _microseconds(copy) + _microseconds(kernel, permute)
        times = f"{in_place:.1f} us as it is, {by_rows:.1f} us as a reduction over rows, {copied:.1f} us from a copy"
        what = f"operand {number} of {symbol(kernel)}"
        if copied >= min(in_place, by_rows):
            erase(copy)
            if by_rows < in_place:
                _reduce_by_rows(kernel)
            remarks.declined(self, f"{what} is read in its own order: {times}", call)
            return
        permute(kernel)
        with ir.InsertionPoint(call), call.location:
            type_ = kernel.regions[0].blocks[0].arguments[argument].type
            made = func.CallOp([type_], symbol(copy), [call.operands[argument]])
        call.operands[argument] = made.results[0]
        remarks.applied(self, f"{what} is copied to another order: {times}", call)


def _microseconds(kernel: ir.Operation, change: Callable[[ir.Operation], None] | None = None) -> float:
    """The microseconds that a kernel is predicted to take after a change; infinite where there is no schedule."""
    module = kernel.parent.operation
    target = target_of_module(module)
    with ir.InsertionPoint(kernel):
        trial = kernel.clone().operation
    try:
        if change is not None:
            change(trial)
        return kernel_prediction(trial, target, machine_of(target, device_of_module(module))).microseconds
    except (PassError, ScheduleError):
        return inf
    finally:
        erase(trial)


def _reduce_by_rows(kernel: ir.Operation) -> None:
    """Makes a kernel's contraction a reduction over rows."""
    contraction = contraction_in(*kernel_space(kernel))
    assert contraction is not None  # checked by _permute
    contraction.structure.op.attributes[BY_ROWS] = ir.UnitAttr.get()


def _candidate(
    kernel: ir.Operation, space: IterationSpace, contraction: Contraction, number: int
) -> tuple[int, tuple[int, ...]] | None:
    """The argument that an operand is, and the order of its axes in a copy; None where no copy is needed."""
    operand, other = operand_of(space, contraction, number), operand_of(space, contraction, 1 - number)
    arguments = list(kernel.regions[0].blocks[0].arguments)
    if operand.ops or operand.source not in arguments:
        return None
    unit = operand.axes[unit_axis(kernel, operand.source, operand.axes)]
    outer = contraction.m if number == 0 else contraction.n
    uses = [use.owner.operation for use in operand.source.uses]
    if unit in (outer, contraction.k) or uses != [contraction.structure.op]:
        return None
    theirs = [dim for dim in other.axes if dim is not None]
    summed = [dim for dim in theirs if dim in contraction.summed]
    free = [dim for dim in operand.axes if dim is not None and dim not in (*summed, outer)]
    dims = [*free, outer, *summed] if theirs[-1] in summed else [*free, *summed, outer]
    ones = [axis for axis, dim in enumerate(operand.axes) if dim is None]
    return arguments.index(operand.source), (*ones, *(operand.axes.index(dim) for dim in dims))


def _permute_argument(kernel: ir.Operation, argument: int, order: Sequence[int]) -> None:
    """Makes a kernel take an argument with permuted axes, C-contiguous."""
    value = kernel.regions[0].blocks[0].arguments[argument]
    for use in list(value.uses):
        op, number = use.owner.operation, use.operand_number
        maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
        axes = projected_axes(maps[number])
        maps[number] = projection(maps[number].value.n_dims, [axes[axis] for axis in order])
        op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    value.set_type(_permuted(value.type, order))
    inputs = [a.type for a in kernel.regions[0].blocks[0].arguments]
    results = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).results
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    attributes = argument_attributes(kernel)
    attributes[argument] = default_attributes()
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])


def _copy_kernel(kernel: ir.Operation, argument: int, order: Sequence[int], name: str) -> ir.Operation:
    """A kernel that copies an argument of another kernel into a permuted order of axes."""
    source = ir.RankedTensorType(kernel.regions[0].blocks[0].arguments[argument].type)
    result = _permuted(source, order)
    with ir.InsertionPoint(kernel), kernel.location:
        made = func.FuncOp(name, ir.FunctionType.get([source], [result]), visibility="private")
        made.attributes[KERNEL] = ir.UnitAttr.get()
        made.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([])
        made.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(argument_attributes(kernel)[argument])])
        block = made.add_entry_block()
        with ir.InsertionPoint(block):
            value = block.arguments[0]
            init = tensor.EmptyOp(result.shape, source.element_type).result
            rank = source.rank
            loops = [list(order).index(axis) for axis in range(rank)]
            maps = ir.ArrayAttr.get([projection(rank, loops), projection(rank, list(range(rank)))])
            kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
            copy = linalg.GenericOp([result], [value], [init], maps, kinds)
            inner = copy.regions[0].blocks.append(*[source.element_type] * 2, arg_locs=[copy.location] * 2)
            with ir.InsertionPoint(inner):
                linalg.YieldOp([inner.arguments[0]])
            func.ReturnOp([copy.results[0]])
        operation = body(kernel)[0].attributes
        if OPERATION in operation:
            copy.attributes[OPERATION] = operation[OPERATION]
    return made.operation


def _permuted(type_: ir.Type, order: Sequence[int]) -> ir.RankedTensorType:
    source = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get([source.shape[axis] for axis in order], source.element_type)

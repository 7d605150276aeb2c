"""Grid reductions whose partials a second kernel combines: kernels are ordered by the stream, without semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.grid_reduction import GridReduction
from mlirfuse.analysis.kernels import body, result_sources, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.kernel_signature import default_attributes
from mlirfuse.tiling.program import mark_equal_extents, open_kernel
from mlirfuse.tiling.reduction.grid_reduction import emit_persistent_loop, emit_second_stage
from mlirfuse.tiling.reduction.reduction_ops import element_type, partial_dims


def emit_two_kernels(
    kernel: ir.Operation, space: IterationSpace, plan: GridReduction, schedule: Schedule, calls: Sequence[ir.Operation]
) -> ir.Operation:
    """Replaces a tensor kernel and its calls by two: one kernel returns partials, and a second kernel combines them.

    Args:
        kernel: the kernel on tensors.
        space: its iteration space.
        plan: its ops, by stage.
        schedule: a schedule whose `persistent_loop` has `grid_reduction = "second_kernel"`.
        calls: the host's calls of the kernel.

    Returns:
        The first kernel's tile program, with the persistent loop.
    """
    assert schedule.persistent_loop is not None  # checked by the pass
    returned = list(body(kernel)[-1].operands)
    second_values = {result for s in [*plan.reductions, *plan.second_stage] for result in s.op.results}
    first_numbers = [n for n, value in enumerate(returned) if value not in second_values]
    second_numbers = [n for n, value in enumerate(returned) if value in second_values]
    shapes = [([schedule.persistent_loop.sharing, *_row(space, s, schedule)], element_type(s)) for s in plan.reductions]
    partials = [ir.RankedTensorType.get(shape, element) for shape, element in shapes]
    memory = [ir.MemRefType.get(shape, element) for shape, element in shapes]

    loop_kernel = open_kernel(kernel, [(type_, {}) for type_ in memory], returned=[returned[n] for n in first_numbers])
    mark_equal_extents(loop_kernel, space)
    emit_persistent_loop(loop_kernel, space, plan, schedule, loop_kernel.workspace)
    partial_inputs = [(type_, default_attributes()) for type_ in memory]
    second_kernel = open_kernel(
        kernel, inputs=partial_inputs, returned=[returned[n] for n in second_numbers], suffix="_second_stage_kernel"
    )
    emit_second_stage(second_kernel, space, plan, schedule)
    if schedule.blocks_per_sm:  # those of the loop; the second kernel has a few blocks, which share no SM
        second_kernel.function.attributes[SCHEDULE] = replace(schedule, blocks_per_sm=1).attribute()

    inputs = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    extents = _extents(kernel, returned)
    name, types = symbol(kernel), [value.type for value in returned]
    result_types = [[types[n] for n in first_numbers] + partials, [types[n] for n in second_numbers]]
    for frame, suffix, arguments, results, positions in (
        (loop_kernel, "", inputs, result_types[0], first_numbers),
        (second_kernel, "_second_stage", [*inputs, *partials], result_types[1], second_numbers),
    ):
        pairs = ir.DenseI64ArrayAttr.get([number for n in positions for number in extents[n]])
        frame.declare(name + suffix, ir.FunctionType.get(arguments, results), pairs)
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            first = func.CallOp(result_types[0], name, list(call.operands))
            first_results = list(first.results)
            second = func.CallOp(
                result_types[1], f"{name}_second_stage", [*call.operands, *first_results[len(first_numbers) :]]
            )
        for n, value in [
            *zip(first_numbers, first_results, strict=False),
            *zip(second_numbers, second.results, strict=True),
        ]:
            call.results[n].replace_all_uses_with(value)
        erase(call)
    erase(kernel)
    return loop_kernel.function.operation


def _row(space: IterationSpace, reduction: OpStructure, schedule: Schedule) -> list[int]:
    """The extents of a row of a reduction's partial results."""
    return [space.extents[d] or 0 for d in partial_dims(space, reduction, schedule)]


def _extents(kernel: ir.Operation, returned: Sequence[ir.Value]) -> list[list[int]]:
    """For each result the (argument, dimension) pairs of its dynamic extents, flattened."""
    sources = iter(result_sources(kernel))
    found = []
    for value in returned:
        tensor = ir.RankedTensorType(value.type)
        dynamic = sum(tensor.is_dynamic_dim(axis) for axis in range(tensor.rank))
        found.append([number for _ in range(dynamic) for number in next(sources)])
    return found

"""`fuse-split-rows`: reduces long rows in parts of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import argument_attributes, body, functions, is_tile_program, kernels, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.reduction_parts import starts_neutral
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import SCHEDULE, STRIDES
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passes.splitting.row_split import ROWS, RowSplit, leading_to
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.reduction_parts import row_parts


@dataclass(frozen=True)
class FuseSplitRows(Pass):
    """Splits a kernel that reduces long rows into two: the first reduces parts of rows, the second the parts' results.

    Requires kernels on tensors, called by a host function. Where a row does not fit a block and the number of rows is
    dynamic, there may be too few rows to fill a device. The host passes a view in which each part is a row, so that
    later passes treat parts as rows. Declines where a schedule is given, where a row is not contiguous, where
    `mlirfuse/schedule/reduction_parts.py` leaves rows whole, and where the kernel has several reductions, or one that
    reads other data than whole rows or does not start from its neutral element.

    ```mlir
    %0 = call @f_0(%x) : (tensor<?x4194304xf32>) -> tensor<?xf32>      // sums over d1
    ```
    becomes
    ```mlir
    %apart = tensor.expand_shape %x [[0], [1, 2]] ... into tensor<?x512x8192xf32>
    %rows = tensor.collapse_shape %apart [[0, 1], [2]] ... into tensor<?x8192xf32>
    %1 = call @f_0_parts(%rows) : (tensor<?x8192xf32>) -> tensor<?xf32>
    %parts = tensor.expand_shape %1 [[0, 1]] ... into tensor<?x512xf32>
    %0 = call @f_0(%parts) : (tensor<?x512xf32>) -> tensor<?xf32>
    ```
    """

    name: ClassVar[str] = "fuse-split-rows"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        calls = {symbol(kernel): call for host in functions(module) for call, kernel in launches(module, host).items()}
        for kernel in list(kernels(module)):
            if is_tile_program(kernel) or SCHEDULE in kernel.attributes:
                remarks.declined(self, "its schedule is given", kernel)
                continue
            space, structures = kernel_space(kernel)
            if symbol(kernel) not in calls or contraction_in(space, structures) is not None or 0 in space.extents:
                remarks.declined(self, "not a reduction of rows that one launch computes", kernel)
                continue
            problem = kernel_problem(kernel, (space, structures)) if space.reduced_dims else None
            parts = row_parts(problem, target) if isinstance(problem, Problem) else 1
            if parts == 1:
                remarks.declined(self, "no dynamic number of long rows that divide into equal parts", kernel)
                continue
            if reason := _obstacle(kernel, space, structures):
                remarks.declined(self, reason, kernel)
                continue
            second = RowSplit(calls[symbol(kernel)], kernel, space, structures, parts).split()
            remarks.applied(self, f"rows of {space.extents[1]} elements are reduced in {parts} parts each", second)


def _obstacle(kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]) -> str | None:
    """Why a kernel's rows cannot be split; None where they can."""
    if space.rank != 2:
        return f"rows in {space.rank - 1} dimensions"
    reductions = [s for s in structures if s.reduction_loops]
    if len(reductions) > 1:
        return "it has several reductions"
    (reduction,) = reductions
    ops = leading_to(reduction, structures)
    first_stage = [s for s in structures if s.op in ops]
    if any(s.op.name != "linalg.generic" or len(s.op.results) != 1 for s in first_stage):
        return "an op before the reduction is not a linalg.generic with one result"
    if space.value_axes[reduction.op.results[0]] != (0,) or ROWS not in space.use_axes.values():
        return "the reduction does not read rows from memory, or gives more than one number a row"
    if not starts_neutral(reduction):
        return "the reduction's initial value is not its neutral element"
    if any(1 in space.loops[s.op] for s in structures if s not in first_stage):
        return "an op after the reduction runs over whole rows"
    for s in first_stage:
        loops = space.loops[s.op]
        axes = [a for a in s.operand_axes if a is not None]
        if any(a and tuple(None if loop is None else loops[loop] for loop in a) != ROWS for a in axes):
            return "the reduction depends on values that are not whole rows"
        if any(inner.operation.name == "linalg.index" for inner in s.op.regions[0].blocks[0].operations):
            return "it uses linalg.index"
    read = {operand for s in first_stage for operand in s.operands}
    arguments = zip(kernel.regions[0].blocks[0].arguments, argument_attributes(kernel), strict=True)
    if any(STRIDES in known for argument, known in arguments if argument in read):
        return "an array is not contiguous"
    dims = [op for op in body(kernel) if op.name == "tensor.dim"]
    sizes = ("tensor.empty", "linalg.fill")
    if any(use.owner.name not in sizes for op in dims for use in op.results[0].uses):
        return "it computes with an extent"
    return None

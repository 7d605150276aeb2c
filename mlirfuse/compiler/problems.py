"""The scheduling problems of a traced function's kernels, for tuning and for predictions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, host_function, is_tile_program, kernels, symbol
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.compiler.compile import Lowered
from mlirfuse.compiler.pipeline import ASSIGN, stage
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute, hints_of
from mlirfuse.passes.kernels.hint_extents import FuseHintExtents
from mlirfuse.passmanager.base import Remarks
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.schedule import Schedule, schedule_of


class KernelProblems:
    """The problems of the kernels that a function was compiled to, for the extents of any call.

    Args:
        lowered: the traced function, whose own hints say which kernels it becomes.
    """

    def __init__(self, lowered: Lowered):
        self._lowered, (self._module, _) = lowered, lowered.with_kernels()

    def of(self, shapes: Sequence[Sequence[int] | None] | None = None, *, given: bool = True) -> dict[str, AnyProblem]:
        """The problem of each kernel on tensors, by the kernel's name before it is tiled.

        Args:
            shapes: of the arguments of a call, whose extents the problems have as hints; None keeps the function's.
            given: whether to include kernels whose schedules are given.
        """
        module = self._module.operation
        with self._module.context:
            if shapes is not None:
                _set_hints(host_function(module), shapes)
                FuseHintExtents().run(module, Remarks())
            return {
                symbol(kernel): kernel_problem(kernel)
                for kernel in kernels(module)
                if (given or SCHEDULE not in kernel.attributes) and not is_tile_program(kernel)
            }

    def schedules(self) -> dict[str, Schedule]:
        """The schedule of each kernel, given, tuned or chosen for what is expected."""
        with self._module.context:
            module = ir.Module.parse(str(self._module))
            run_pipeline(module, stage(ASSIGN, fast_math=self._lowered.fast_math, tuned=self._lowered.tuned))
            return {symbol(kernel): schedule_of(kernel) for kernel in kernels(module.operation)}


def problems_of(lowered: Lowered, *, given: bool = False) -> dict[str, AnyProblem]:
    """The problem of each kernel on tensors, by the kernel's name before it is tiled.

    Args:
        lowered: the traced function.
        given: whether to include kernels whose schedules are given.
    """
    return KernelProblems(lowered).of(given=given)


def expected_shapes(lowered: Lowered) -> list[tuple[int | None, ...] | None]:
    """The shape of each argument, with what is expected of run-time extents; None for a number."""
    function = host_function(lowered.module.operation)
    arguments, found = function.regions[0].blocks[0].arguments, list[tuple[int | None, ...] | None]()
    for argument, known in zip(arguments, argument_attributes(function), strict=True):
        type_ = argument.type
        if not isinstance(type_, ir.RankedTensorType):
            found.append(None)
            continue
        hints = hints_of(known, type_.rank)
        found.append(tuple(h if type_.is_dynamic_dim(d) else type_.get_dim_size(d) for d, h in enumerate(hints)))
    return found


def _set_hints(function: ir.Operation, shapes: Sequence[Sequence[int] | None]) -> None:
    """Gives the arguments of a host function the extents of a call as hints."""
    attributes = argument_attributes(function)
    for argument, known, shape in zip(function.regions[0].blocks[0].arguments, attributes, shapes, strict=True):
        if shape is not None and isinstance(type_ := argument.type, ir.RankedTensorType):
            known[EXTENT_HINTS] = hints_attribute([n if type_.is_dynamic_dim(d) else None for d, n in enumerate(shape)])
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])

"""The predicted time of a kernel that is yet to be split by `fuse-split-reductions`."""

from __future__ import annotations

from functools import partial

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import argument_attributes, body, content, functions, kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction, reduction_microseconds
from mlirfuse.analysis.scheduling.scheduling_problem import depends_on_calls
from mlirfuse.dialect.attributes import SCHEDULE, TARGET
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.kernels.collapse_dims import FuseCollapseDims
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passes.kernels.merge_exp_sums import FuseMergeExpSums
from mlirfuse.passes.kernels.merge_moments import FuseMergeMoments
from mlirfuse.passes.splitting.split_reductions import FuseSplitReductions
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.recent import Recent
from mlirfuse.support.rewriting import backward_slice, clone, read_values
from mlirfuse.target import Target
from mlirfuse.tiling.kernel_signature import default_attributes

SPLITTING: tuple[Pass, ...] = (FuseCollapseDims(), FuseMergeMoments(), FuseMergeExpSums(), FuseSplitReductions())
"""What splits the statistics of kernels off, and what that depends on, in the pipeline's order."""


def split_microseconds(module: ir.Operation, kernel: ir.Operation) -> float:
    """What a kernel is predicted to take, where its statistics, and parts of what it reduces, may get kernels of their
    own.

    Args:
        module: the module that says what device it is for, which stays as it is.
        kernel: a kernel on tensors.

    Raises:
        ScheduleError: the kernel's ops share no iteration space, or no schedule fits.
    """
    target = target_of_module(module)
    machine = machine_of(target, device_of_module(module))
    compute = partial(_microseconds, module, kernel, target, machine)
    return compute() if depends_on_calls(kernel) else _known.of((content(kernel), target, machine), compute)


_known: Recent[tuple[bytes, Target, MachineModel], float] = Recent(1024)
"""Times by a kernel's IR: chains of steps have the same kernels again and again."""


def _microseconds(module: ir.Operation, kernel: ir.Operation, target: Target, machine: MachineModel) -> float:
    space, structures = kernel_space(kernel)
    whole = SCHEDULE in kernel.attributes or contraction_in(space, structures) is not None
    if whole or not space.reduced_dims:
        return kernel_prediction(kernel, target, machine).microseconds
    trial = _alone(module, kernel).operation
    for each in SPLITTING:
        each.run(trial, Remarks())
    return sum(reduction_microseconds(part, target, machine) for part in list(kernels(trial)))


def _alone(module: ir.Operation, kernel: ir.Operation) -> ir.Module:
    """A module of a copy of a kernel, and of a function that launches it, of the same views where one call says which
    these are.
    """
    with kernel.location:
        trial = ir.Module.create()
    if TARGET in module.attributes:
        trial.operation.attributes[TARGET] = module.attributes[TARGET]
    naming = [call for function in functions(module) for call in calls(function) if callee(call) == symbol(kernel)]
    if len(naming) == 1:
        (call,) = naming
        operands, views, known = list(call.operands), _views_of(call), _declared(call.parent)
    else:
        operands, views, known = list(kernel.regions[0].blocks[0].arguments), [], {}
    made = {result for view in views for result in view.results}
    read = [*operands, *(value for view in views for value in read_values(view))]
    given = [value for value in dict.fromkeys(read) if value not in made]
    known |= dict(zip(operands, argument_attributes(kernel), strict=True))
    results = [value.type for value in body(kernel)[-1].operands]
    with ir.InsertionPoint(trial.body), kernel.location:
        host = func.FuncOp("trial", ([value.type for value in given], results))
        host.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(_attributes(value, known)) for value in given])
        block = host.add_entry_block()
        mapping = dict(zip(given, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for view in views:
                clone(view, mapping)
            passed = [mapping[operand] for operand in operands]
            func.ReturnOp(func.CallOp(results, symbol(kernel), passed).results)
        kernel.clone()
    return trial


def _views_of(call: ir.Operation) -> list[ir.Operation]:
    """The ops of the host between what other calls make and what this one is passed, in order."""
    ops = [op for op in body(call.parent) if op.name != "func.call"]
    wanted = backward_slice(call.operands, ops)
    return [op for op in ops if op in wanted]


def _declared(function: ir.Operation) -> dict[ir.Value, dict[str, ir.Attribute]]:
    """The attributes of a function's arguments."""
    return dict(zip(function.regions[0].blocks[0].arguments, argument_attributes(function), strict=True))


def _attributes(value: ir.Value, known: dict[ir.Value, dict[str, ir.Attribute]]) -> dict[str, ir.Attribute]:
    """The attributes of an argument that holds a value of another function."""
    return known.get(value) or (default_attributes() if isinstance(value.type, ir.RankedTensorType) else {})

"""The predicted time of a sum of products alone, as it is or rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.kernels import argument_attributes, kernels
from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.dialect.attributes import ALIGN, STRIDES, TARGET
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.fusion.permuted_product import microseconds
from mlirfuse.passes.fusion.segment import FuseSegment
from mlirfuse.passes.graph.collapse_contractions import FuseCollapseContractions
from mlirfuse.passes.groups.grouped_sum import RESULT, arrays, cast_of
from mlirfuse.passes.kernels.collapse_dims import FuseCollapseDims
from mlirfuse.passes.kernels.scatter_results import FuseScatterResults
from mlirfuse.passes.views.copy_reshaped import FuseCopyReshaped
from mlirfuse.passmanager.base import Remarks
from mlirfuse.schedule.contractions.step_times import BURST
from mlirfuse.schedule.predict.work import US
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import clone, defining_op
from mlirfuse.target.instructions import FAMILIES
from mlirfuse.tiling.kernel_signature import default_attributes

KINDS = {1: ("f8", "int8"), 2: ("16bit",), 4: ("tf32",), 8: ("f64",)}
"""The rates of tensor cores by the bytes of an operand's element."""

Rewrite = Callable[[ir.Operation], None]
"""Changes a copy of the sum, and of the ops that put its result in order."""


def least_microseconds(module: ir.Operation, op: ir.Operation, extents: Sequence[int]) -> float:
    """What a sum takes at least with such extents of its loops: its products, at the highest rate of tensor cores."""
    machine = machine_of(target_of_module(module), device_of_module(module))
    size = from_mlir(ir.RankedTensorType(arrays(op)[0].type).element_type).bytes
    rates = [getattr(machine, f"{name}_{kind}_per_sm", 0.0) or 0.0 for name in FAMILIES for kind in KINDS[size]]
    if not any(rates):
        return 0.0
    return US * 2 * prod(extents) / (BURST * max(rates) * machine.sms)


def microseconds_of(
    module: ir.Operation, function: ir.Operation, op: ir.Operation, rewrite: Rewrite | None = None
) -> float:
    """The predicted microseconds of the kernels that compute a sum in its memory order; infinite without a schedule.

    Args:
        module: the module, which stays as it is.
        function: the function that the sum is in.
        op: the sum.
        rewrite: changes the copy of the sum that is tried.
    """
    with op.location:
        trial = ir.Module.create()
    if TARGET in module.attributes:
        trial.operation.attributes[TARGET] = module.attributes[TARGET]
    copy = _copy_alone(trial, function, op)
    if rewrite is not None:
        rewrite(copy)
    for each in (
        FuseCollapseContractions(),
        FuseCopyReshaped(),
        FuseSegment(),
        FuseCollapseDims(),
        FuseScatterResults(),
    ):
        each.run(trial.operation, Remarks())
    return sum(microseconds(kernel, waits=n > 0) for n, kernel in enumerate(list(kernels(trial.operation))))


def _copy_alone(trial: ir.Module, function: ir.Operation, op: ir.Operation) -> ir.Operation:
    """A function of a module for a trial, with a copy of an op, the views that it reads, and the ops that put its
    result in the order that it has in memory; returns the copy.
    """
    start = defining_op(op.operands[RESULT])
    assert start is not None  # checked by grouped_sum
    ops = [*_views_of(list(op.operands)[:RESULT]), *_constant(start), op]
    while (reader := _reader_of(ops[-1])) is not None:
        ops += [*_constant(defining_op(reader.operands[len(reader.operands) - 1])), reader]
    made = {value for each in ops for value in each.results}
    inputs = list(dict.fromkeys(value for each in ops for value in each.operands if value not in made))
    arguments, known = list(function.regions[0].blocks[0].arguments), argument_attributes(function)
    attributes = [
        {name: attribute for name, attribute in known[arguments.index(value)].items() if name in (ALIGN, STRIDES)}
        if value in arguments
        else default_attributes()
        for value in inputs
    ]
    with ir.InsertionPoint(trial.body), op.location:
        new = func.FuncOp("trial", ([value.type for value in inputs], [ops[-1].results[0].type]))
        new.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])
        block = new.add_entry_block()
        mapping = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            copies = [clone(each, mapping) for each in ops]
            func.ReturnOp([copies[-1].results[0]])
    return copies[ops.index(op)]


def _reader_of(op: ir.Operation) -> ir.Operation | None:
    """A cast of an op's result, or a gathered view of it, if that is its only reader."""
    if (cast := cast_of(op)) is not None:
        return cast
    uses = list(op.results[0].uses)
    reader = uses[0].owner.operation if len(uses) == 1 else None
    return reader if reader is not None and reader.name == DEFINITION.full_name else None


def _constant(init: ir.Operation | None) -> list[ir.Operation]:
    """What makes the initial value of a `linalg.generic`; nothing for a value that is computed."""
    if init is None or init.name not in ("linalg.fill", "tensor.empty"):
        return []
    return [*(each for value in init.operands if (each := defining_op(value)) is not None), init]


def _views_of(values: Sequence[ir.Value]) -> list[ir.Operation]:
    """The gathered views and reshapes that values are made of, sources first."""
    found: list[ir.Operation] = []
    for value in values:
        maker = defining_op(value)
        if maker is not None and maker.name in (DEFINITION.full_name, *RESHAPES):
            found += [*_views_of([maker.operands[0]]), maker]
    return list(dict.fromkeys(found))

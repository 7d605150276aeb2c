"""The predicted time of some ops of a function by themselves, as kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import NamedTuple

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in, product_of
from mlirfuse.analysis.extent_hints import HostExtents
from mlirfuse.analysis.kernels import argument_attributes, body, content, functions, kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.analysis.memory.host_views import is_host_view, is_memory_view
from mlirfuse.analysis.segments.segments import CHEAP_OPS
from mlirfuse.dialect.attributes import TARGET
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute
from mlirfuse.dialect.scatter import scatter_of
from mlirfuse.errors import PassError, ScheduleError, UnreadExtentError
from mlirfuse.passes.fusion.join_kernels import FuseJoinKernels
from mlirfuse.passes.fusion.mix_order_reduction import FuseMixOrderReduction
from mlirfuse.passes.fusion.permute_operands import FusePermuteOperands
from mlirfuse.passes.fusion.permuted_product import microseconds
from mlirfuse.passes.fusion.prologues import FusePrologues
from mlirfuse.passes.fusion.recompute import FuseRecompute
from mlirfuse.passes.fusion.segment import FuseSegment
from mlirfuse.passes.fusion.shared_operands import FuseSharedOperands
from mlirfuse.passes.gathers.compose_gathers import FuseComposeGathers
from mlirfuse.passes.gathers.gather_reductions import FuseGatherReductions
from mlirfuse.passes.kernels.hint_extents import FuseHintExtents
from mlirfuse.passes.kernels.scatter_parts import FuseScatterParts
from mlirfuse.passes.kernels.scatter_results import FuseScatterResults
from mlirfuse.passes.slices.sliced_ops import behind, is_elementwise, readers
from mlirfuse.passes.splitting.split_time import split_microseconds
from mlirfuse.passes.views.copy_reshaped import FuseCopyReshaped
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.schedule.contractions.grid import UNKNOWN_EXTENT
from mlirfuse.support.recent import Recent
from mlirfuse.support.rewriting import clone, defining_op, read_values
from mlirfuse.tiling.kernel_signature import default_attributes

Rewrite = Callable[[dict[ir.Operation, ir.Operation]], None]
"""Changes copies of ops, by the ops that they are copies of."""

MOST_OPS = 256
"""Ops of a trial, at most: each is scheduled twice, which takes some 10 ms."""

FUSION: tuple[Pass, ...] = (
    FuseComposeGathers(),
    FuseGatherReductions(),
    FuseCopyReshaped(),
    FuseSegment(),
    FuseHintExtents(),
    FuseMixOrderReduction(),
    FuseRecompute(),
    FusePrologues(),
    FuseJoinKernels(),
    FusePermuteOperands(),
    FuseSharedOperands(),
    FuseScatterResults(),
    FuseScatterParts(),
    FuseHintExtents(),
)
"""What makes kernels of ops, and fewer of these."""


class Trial:
    """A function of copies of some ops, in a module of its own.

    Args:
        module: the module that the ops are in, which stays as it is.
        function: the function that they are in.
        ops: the ops; views of arguments and constants that they read are copied too, and other values are arguments.

    Attributes:
        module: the module of the copies.
        copies: the copy of each op.
    """

    def __init__(self, module: ir.Operation, function: ir.Operation, ops: Iterable[ir.Operation]):
        members = _with_views(function, ops)
        ordered = [op for op in body(function) if op in members]
        made = {result for op in ordered for result in op.results}
        inputs = list(dict.fromkeys(v for op in ordered for v in read_values(op) if v not in made))
        outputs = [
            result
            for op in ordered
            for result in op.results
            if any(use.owner.operation not in members for use in result.uses) and op.name not in CHEAP_OPS
        ]
        known = dict(zip(function.regions[0].blocks[0].arguments, argument_attributes(function), strict=True))
        tensors = [isinstance(value.type, ir.RankedTensorType) for value in inputs]
        expected = HostExtents(function)
        attributes = [
            {**(known.get(value) or default_attributes()), **_hints(expected, value)} if is_tensor else {}
            for value, is_tensor in zip(inputs, tensors, strict=True)
        ]
        with function.location:
            self.module = ir.Module.create()
        if TARGET in module.attributes:
            self.module.operation.attributes[TARGET] = module.attributes[TARGET]
        self.copies: dict[ir.Operation, ir.Operation] = {}
        with ir.InsertionPoint(self.module.body), function.location:
            new = func.FuncOp("trial", ([v.type for v in inputs], [v.type for v in outputs]))
            new.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])
            block = new.add_entry_block()
            mapping = dict(zip(inputs, block.arguments, strict=True))
            with ir.InsertionPoint(block):
                for op in ordered:
                    self.copies[op] = clone(op, mapping)
                func.ReturnOp([mapping[v] for v in outputs])

    def microseconds(self, rewrite: Rewrite | None = None) -> float:
        """What the kernels of the function are predicted to take together; infinite if one has no schedule, or a
        run-time extent of nothing that it reads.

        Args:
            rewrite: changes the copies before, by the ops that they are copies of.
        """
        if rewrite is not None:
            rewrite(self.copies)
        operation = self.module.operation
        (function,) = functions(operation)
        target = str(operation.attributes[TARGET]) if TARGET in operation.attributes else None
        return _known.of((content(function), target), self.fused_microseconds)

    def fused_microseconds(self) -> float:
        """The same, computed anew: the module has the kernels then."""
        try:
            for each in FUSION:
                each.run(self.module.operation, Remarks())
        except UnreadExtentError:  # it names arguments of the trial; the pass that segments will say which they are
            return inf
        return sum(_microseconds(self.module.operation, kernel) for kernel in list(kernels(self.module.operation)))


def _microseconds(module: ir.Operation, kernel: ir.Operation) -> float:
    """What a kernel of a trial is predicted to take, which passes behind may split; infinite without a schedule."""
    with suppress(PassError, ScheduleError):
        space, structures = kernel_space(kernel)
        scatters = any(scatter_of(value) is not None for value in body(kernel)[-1].operands)
        if space.reduced_dims and not scatters and contraction_in(space, structures) is None:
            return split_microseconds(module, kernel)
        return microseconds(kernel)
    return inf


_known: Recent[tuple[bytes, str | None], float] = Recent(256)
"""Times by the function and the target: passes that compare several forms ask for the first one again."""


class Comparison(NamedTuple):
    """Predicted times of some ops, in microseconds.

    Attributes:
        before: as they are.
        after: rewritten.
    """

    before: float
    after: float

    @property
    def gains(self) -> bool:
        """Whether the rewritten ops clearly take less time."""
        return self.after * RESOLUTION < self.before


def compare(module: ir.Operation, function: ir.Operation, ops: Iterable[ir.Operation], rewrite: Rewrite) -> Comparison:
    """Schedules some ops of a function on trial as they are, and with copies of them rewritten.

    Args:
        module: the module that the ops are in, which stays as it is.
        function: the function that they are in.
        ops: the ops.
        rewrite: changes the copies, by the ops that they are copies of.
    """
    members = set(ops)
    before = Trial(module, function, members).microseconds()
    return Comparison(before, Trial(module, function, members).microseconds(rewrite))


def surrounded(ops: Iterable[ir.Operation]) -> set[ir.Operation]:
    """Some ops, all that need their results but products, and the elementwise ops that these need, through such ops
    and views alone: others have kernels of their own either way.
    """
    found = {*ops, *needing(ops)}
    open_, seen = list(found), set(found)
    while open_:
        for maker in map(defining_op, read_values(open_.pop())):
            if maker is not None and maker not in seen and (is_elementwise(maker) or is_memory_view(maker)):
                seen.add(maker)
                open_.append(maker)
    return found | set(filter(is_elementwise, seen))


def needing(ops: Iterable[ir.Operation]) -> list[ir.Operation]:
    """The ops that need results of some, through views of these too, but products and what needs these, which no kernel
    has together with the others.
    """
    found = behind(ops, lambda op: op.name == "linalg.generic", is_memory_view)
    products = [op for op in found if product_of(op) is not None]
    late = {*products, *behind(products, lambda op: bool(op.results), is_memory_view)}
    return [op for op in found if op not in late]


def computing(op: ir.Operation) -> OpStructure | None:
    """The structure of an op with a body; None for other ops, and for a product."""
    structure = structure_of(op) if op.name == "linalg.generic" else None
    return structure if structure is not None and product_of(op) is None else None


def _hints(expected: HostExtents, value: ir.Value) -> dict[str, ir.Attribute]:
    """What is expected of the run-time extents of a value: the same of all, where nobody says."""
    type_ = ir.RankedTensorType(value.type)
    if type_.has_static_shape:
        return {}
    hints = [n or UNKNOWN_EXTENT if type_.is_dynamic_dim(d) else None for d, n in enumerate(expected.of(value))]
    return {EXTENT_HINTS: hints_attribute(hints)}


def _with_views(function: ir.Operation, ops: Iterable[ir.Operation]) -> set[ir.Operation]:
    """The ops, with the constants that they read, what makes views of arguments for them, and views of their results
    that others of them read.
    """
    found = set(ops)
    open_: list[ir.Operation] = list(found)
    while open_:
        for value in read_values(open_.pop()):
            maker = defining_op(value)
            if maker is not None and maker not in found and (maker.name in CHEAP_OPS or _views_argument(maker)):
                found.add(maker)
                open_.append(maker)
    for op in body(function):
        is_between = op not in found and is_memory_view(op) and defining_op(op.operands[0]) in found
        if is_between and any(reader in found for reader in readers(op, is_memory_view)):
            found.add(op)
    return found


def _views_argument(op: ir.Operation) -> bool:
    if not is_host_view(op):
        return False
    maker = defining_op(op.operands[0])
    return maker is None or _views_argument(maker)

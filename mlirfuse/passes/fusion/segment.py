"""`fuse-segment`: one kernel function for each group of ops that share an iteration space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import func, linalg

from mlirfuse.analysis.kernels import argument_attributes, body, functions, kernels, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.memory.host_views import is_host_view, rearranged_axes, view_layout, viewed
from mlirfuse.analysis.segments.segments import CHEAP_OPS, GATHERED, Segment, joint_space, segment_ops
from mlirfuse.dialect.attributes import ALIGN, KERNEL, NAME, RESULT_EXTENTS, SCHEDULE, SCHEDULES
from mlirfuse.dialect.gathered_view import gather_of, view_attributes
from mlirfuse.errors import PassError, UnreadExtentError
from mlirfuse.passes.fusion.extents import read_extents_of_inputs, sink_index_arithmetic, sources_of_extent
from mlirfuse.passes.kernels.host import order_host_ops
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import clone, defining_op, erase, erase_dead, read_values
from mlirfuse.tiling.kernel_signature import default_attributes, result_extents

GENERALIZE = "run linalg-generalize-named-ops before"


@dataclass(frozen=True)
class FuseSegment(Pass):
    """Moves each group of fusable ops into a kernel function, and calls it from where they were.

    Requires functions of linalg and tensor ops on tensors; functions that are kernels already, or that hold no such op,
    are left alone. A `linalg.generic` that yields one constant becomes a `linalg.fill`. Unused ops are erased.
    `mlirfuse/analysis/segments/segments.py` states when ops share a kernel. A remark says why an op does not join its
    producer, and names the ops that stay in the host function. Where fusion is off, `fuse.operation` numbers the ops,
    and those of one number share a kernel. Raises `UnreadExtentError` where a kernel has a dynamic extent
    that none of its inputs has, as one that only writes zeros: the extent would be unknown at run time.

    ```mlir
    func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %0 = linalg.generic ... ins(%x) ...
      %1 = linalg.generic ... ins(%0) ...
      return %1
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
      return %0
    }
    func.func private @f_0(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} { ... }
    ```
    """

    name: ClassVar[str] = "fuse-segment"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for function in list(functions(module)):
            if KERNEL in function.attributes:
                continue
            _name_fills(function)
            read_extents_of_inputs(function)
            sink_index_arithmetic(function)
            erase_dead([op for op in body(function) if op.results])
            ops = body(function)
            plan = segment_ops(ops)
            for op in ops:
                named = op.name.startswith("linalg.") and op.name not in CHEAP_OPS and rearranged_axes(op) is None
                if named and structure_of(op) is None:
                    remarks.declined(self, f"{op.name} is a named op, without indexing maps: {GENERALIZE}", op)
            if not plan.segments:
                remarks.declined(self, "no op to put into a kernel", function)
                continue
            for op, reason in plan.declined:
                remarks.declined(self, f"{op.name} starts a kernel of its own: {reason}", op)
            attributes = dict(zip(function.regions[0].blocks[0].arguments, argument_attributes(function), strict=True))
            for index, segment in enumerate(plan.segments):
                _outline(function, segment, f"{symbol(function)}_{index}", attributes)
            _hand_out_schedules(module, function)
            erase_dead([op for op in ops if op.results])
            order_host_ops(function)
            remarks.applied(self, f"{len(plan.segments)} kernel(s)", function)


def _name_fills(function: ir.Operation) -> None:
    """Rewrites every `linalg.generic` that yields a constant to a `linalg.fill`, so that kernels need not read it."""
    for op in body(function):
        if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.ShapedType):
            continue
        block = op.regions[0].blocks[0]
        if len(block.operations) == 1 and block.operations[0].operation.operands[0] == block.arguments[0]:
            with ir.InsertionPoint(op), op.location:
                filled = linalg.fill(op.operands[0], outs=[op.operands[1]])
            op.results[0].replace_all_uses_with(filled)
            erase(op)


def _hand_out_schedules(module: ir.Operation, function: ir.Operation) -> None:
    """Moves the user's schedules to their kernels; raises `PassError` for a kernel that does not exist."""
    if SCHEDULES not in function.attributes:
        return
    made = {symbol(kernel): kernel for kernel in kernels(module)}
    for entry in ir.DictAttr(function.attributes[SCHEDULES]):
        if entry.name not in made:
            raise PassError(
                f"a schedule is given for {entry.name}, which is no kernel",
                where=function,
                hint=f"kernels: {', '.join(made)}",
            )
        made[entry.name].attributes[SCHEDULE] = entry.attr
    del function.attributes[SCHEDULES]


def _outline(
    function: ir.Operation, segment: Segment, name: str, attributes: dict[ir.Value, dict[str, ir.Attribute]]
) -> None:
    """Builds the kernel function of a segment and its call."""
    members = set(segment.ops)
    ops = _with_cheap_producers(segment.ops)
    made = {r for op in ops for r in op.results}
    inputs = list(dict.fromkeys(v for op in ops for v in read_values(op) if v not in made))
    outputs = [
        result
        for op in segment.ops
        for result in op.results
        if any(_outermost(use.owner, function) not in members for use in result.uses)
    ]
    if not outputs:
        return
    space = _space_of(segment)
    _check_extents(function, segment, space)
    kernel = func.FuncOp(
        name,
        ir.FunctionType.get([v.type for v in inputs], [v.type for v in outputs]),
        visibility="private",
        ip=ir.InsertionPoint(function.parent.regions[0].blocks[0]),
        loc=function.location,
    )
    kernel.attributes[KERNEL] = ir.UnitAttr.get()
    kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(
        result_extents(space, inputs, outputs, segment.ops[-1])
    )
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get(_input_attributes(v, attributes)) for v in inputs]
    )
    block = kernel.add_entry_block()
    mapping = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block), function.location:
        for op in ops:
            clone(op, mapping)
        func.ReturnOp([mapping[v] for v in outputs])

    users = {_outermost(use.owner, function) for value in outputs for use in value.uses} - members
    first_user = next(op for op in body(function) if op in users)
    with ir.InsertionPoint(first_user), segment.ops[-1].location:
        call = func.CallOp([v.type for v in outputs], name, inputs)
    for old, new in zip(outputs, call.results, strict=True):
        old.replace_all_uses_with(new)


def _check_extents(function: ir.Operation, segment: Segment, space: IterationSpace) -> None:
    """Raises `UnreadExtentError` for a dynamic dimension along which the segment reads nothing."""
    read = {dim for axes in space.use_axes.values() for dim in axes}
    for value, axes in space.value_axes.items():
        for axis, dim in enumerate(axes):
            if dim is None or dim in read or space.extents[dim] is not None:
                continue
            sources = sources_of_extent(value, axis)
            if not sources:
                continue
            names = [argument_attributes(function)[argument].get(NAME) for argument, _ in sources]
            which = " and ".join(
                f"dimension {number} of {(name and ir.StringAttr(name).value) or f'argument {argument}'}"
                for name, (argument, number) in zip(names, sources, strict=True)
            )
            error = UnreadExtentError(
                f"a result has the dynamic extent of {which}, and its kernel reads nothing with that extent",
                where=defining_op(value),
                hint="make the extent static",
            )
            error.sources = sources
            raise error


def _space_of(segment: Segment) -> IterationSpace:
    """The segment's iteration space; raises `PassError` for a single op that no kernel can be made of."""
    space = joint_space([s for op in segment.ops if (s := structure_of(op)) is not None])
    if isinstance(space, Conflict):
        raise PassError(f"no kernel can be made of {space.op.name}: {space.reason}", where=space.op)
    return space


def _gathered_source(value: ir.Value) -> ir.Operation | None:
    """The gathered view that a value is, or is a view of on the host."""
    owner = defining_op(viewed(value))
    return owner if owner is not None and owner.name == GATHERED else None


def _input_attributes(value: ir.Value, attributes: dict[ir.Value, dict[str, ir.Attribute]]) -> dict[str, ir.Attribute]:
    """The attributes of a kernel's input: an argument of the host function, a view of one, or an intermediate."""
    if value in attributes:
        return attributes[value]
    owner = defining_op(value)
    source: dict[str, ir.Attribute] = {}
    if owner is not None and owner.name == GATHERED:
        if (first := _gathered_source(owner.operands[0])) is not None:
            raise PassError(
                "a kernel is passed the source of a gathered view, and this one's is a gathered view itself",
                where=first,
                hint="make one view of the two (passes/gathers/compose_gathers.py), or copy the first",
            )
        source = _input_attributes(owner.operands[0], attributes)
        return view_attributes(gather_of(owner.attributes), ir.RankedTensorType(owner.operands[0].type), source)
    if owner is not None and is_host_view(owner):
        if (viewed_gather := _gathered_source(value)) is not None:
            raise PassError(
                "a kernel is passed the source of a gathered view, and this one's is a reshape of one",
                where=viewed_gather,
                hint="run fuse-reshape-gathers before",
            )
        seen = view_layout(owner, _input_attributes(owner.operands[0], attributes))
        if seen is None:
            raise PassError(
                "a reshape of an argument that is not contiguous would need a copy",
                where=owner,
                hint="run fuse-copy-reshaped before",
            )
        source = dict(seen)
    if isinstance(value.type, ir.RankedTensorType) and ALIGN not in source:
        source = default_attributes()
    return source


def _outermost(op: ir.OpView, function: ir.Operation) -> ir.Operation:
    """The op directly in the function's body that holds `op`."""
    current = op.operation
    while current.parent.operation != function:
        current = current.parent.operation
    return current


def _with_cheap_producers(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops of a segment, with the constants, extents and inits that they use in front of them."""
    ordered: dict[ir.Operation, None] = {}

    def visit(op: ir.Operation) -> None:
        for value in read_values(op):
            owner = defining_op(value)
            if owner is not None and owner.name in CHEAP_OPS and owner not in ordered:
                visit(owner)
        ordered[op] = None

    for op in ops:
        visit(op)
    return list(ordered)

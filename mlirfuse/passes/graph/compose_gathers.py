"""`fuse-compose-gathers`: elementwise ops whose results are only gathered compute the gathered elements instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.arithmetic.instruction_counts import instructions_of
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.passes.graph.joined_results import joins_results
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import substituted, used_dims
from mlirfuse.support.rewriting import clone, defining_op, erase_dead, nested

_DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")


@dataclass(frozen=True)
class FuseComposeGathers(Pass):
    """Moves a gathered view of an elementwise op's result to the op's operands.

    One kernel then computes the result in the order in which it is read.
    Requires functions of tensor ops with static extents. The op, and those that make its operands where nothing else
    reads them, must be elementwise, up to tensors that are in memory anyway; the view must stay inside of the result,
    and have no more elements than it, so that nothing is computed twice. Or all of its readers must select its elements
    under a check that they are inside of the result, as those of joined arrays do, and the ops be cheap: they are then
    computed of the zeros past the end of their operands too.

    ```mlir
    %y = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<29x8xf32>, tensor<8xf32>) ...
    %z = "fuse.gathered_view"(%y) {map = affine_map<(h, a) -> ((h + 1) floordiv 2, ...)>, ...}
    ```
    becomes
    ```mlir
    %v = "fuse.gathered_view"(%x) {map = affine_map<(h, a) -> ((h + 1) floordiv 2, ...)>, ...}
    %u = "fuse.gathered_view"(%w) ...
    %z = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%v, %u : tensor<56x2xf32>, ...) ...
    ```
    """

    name: ClassVar[str] = "fuse-compose-gathers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            composed = 0
            for op in (op for op in ops if op.name == DEFINITION.full_name and not gather_of(op.attributes).inside):
                if not _is_computed(op.operands[0]):
                    continue
                checks = _checks_of(op)
                if reason := _obstacle(op, checks):
                    remarks.declined(self, reason, op)
                    continue
                for check in checks:
                    check.operands[0] = _of_same_shape(op.operands[0]) or check.operands[0]
                with ir.InsertionPoint(op):
                    new = _composed(op.operands[0], gather_of(op.attributes))
                op.results[0].replace_all_uses_with(new)
                composed += 1
            if composed:
                erase_dead([op for op in ops if op.name in (DEFINITION.full_name, "linalg.generic")])
                remarks.applied(self, f"{composed} views of elementwise results", function)
            else:
                remarks.declined(self, "no view of an elementwise result", function)


def _obstacle(view: ir.Operation, checks: Sequence[ir.Operation]) -> str | None:
    """Why a view of an op's result is left alone; None where it is not."""
    gather, source = gather_of(view.attributes), ir.RankedTensorType(view.operands[0].type)
    if not checks and not is_whole_selection(gather, source.shape):
        return "the view leaves the result, or has an element of it more than once"
    if checks and joins_results(view):
        return "it is a part of a result, which a kernel stores where it belongs"
    if checks and _of_same_shape(view.operands[0]) is None:
        return "nothing that the result is computed from has its shape"
    open_ = [view.operands[0]]
    while open_:
        value = open_.pop()
        structure = _elementwise(value, 1 + len(checks) if value == view.operands[0] else 1)
        if structure is None:
            return "the result is not elementwise, or not read by the view alone"
        if checks and not _is_cheap(structure.op):
            return "the result takes long to compute, and would be computed past its end too"
        open_ += [operand for operand in structure.operands[:-1] if _is_computed(operand)]
    return None


def _checks_of(view: ir.Operation) -> list[ir.Operation]:
    """The views of checks under which alone the elements of a view are selected; none where any element is used."""
    checks: dict[ir.Operation, None] = {}
    for use in view.results[0].uses:
        reader, number = use.owner.operation, use.operand_number
        if reader.name != "linalg.generic":
            return []
        maps = list(ir.ArrayAttr(reader.attributes["indexing_maps"]))
        arguments = list(_block(reader).arguments)
        for inner in arguments[number].uses:
            select = inner.owner.operation
            condition = select.operands[0] if select.name == "arith.select" and inner.operand_number == 1 else None
            if condition is None or condition not in arguments:
                return []
            checked = arguments.index(condition)
            check = defining_op(reader.operands[checked])
            if check is None or maps[checked] != maps[number] or not _checks(check, view):
                return []
            checks[check] = None
    return list(checks)


def _checks(check: ir.Operation, view: ir.Operation) -> bool:
    """Whether an op says which elements of a view are inside of its source."""
    if check.name != DEFINITION.full_name or check.operands[0] != view.operands[0]:
        return False
    return gather_of(check.attributes) == replace(gather_of(view.attributes), inside=True)


def _of_same_shape(value: ir.Value) -> ir.Value | None:
    """What an elementwise op computes a value from that has its shape, and is no view of another one, nor computed
    itself; None without any.
    """
    structure = structure_of(value.owner.operation)
    if structure is None:
        return None
    for operand in structure.operands[:-1]:
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        if list(ir.RankedTensorType(operand.type).shape) == list(ir.RankedTensorType(value.type).shape):
            maker = defining_op(operand)
            found = _of_same_shape(operand) if _is_computed(operand) else operand
            if found is not None and (maker is None or maker.name != DEFINITION.full_name):
                return found
    return None


def _is_cheap(op: ir.Operation) -> bool:
    """Whether an op may be computed of anything, and again, as a cast or a negation may."""
    divides = any(inner.name.startswith("arith.") and inner.name.endswith(_DIVISIONS) for inner in nested(op))
    return not divides and not instructions_of(op).special


def is_whole_selection(gather: Gather, shape: Sequence[int]) -> bool:
    """Whether a view is one of undivided indices, stays inside of a source of that shape, and is no larger than it."""
    if gather.inside or gather.joins_components or prod(gather.shape) > prod(shape):
        return False
    return all(gather.is_inside(axis, extent) for axis, extent in enumerate(shape))


def _is_computed(value: ir.Value) -> bool:
    """Whether a value is computed, rather than viewed or stored in another order for its readers."""
    maker = defining_op(value)
    return maker is not None and maker.name == "linalg.generic" and len(_block(maker).operations) > 1


def _block(op: ir.Operation) -> ir.Block:
    return op.regions[0].blocks[0]


def _elementwise(value: ir.Value, uses: int = 1) -> OpStructure | None:
    """The op that makes a value, if it is computed by elements and read as often; None for another value."""
    structure = structure_of(value.owner.operation) if _is_computed(value) else None
    if structure is None or structure.reduction_loops or len(structure.op.results) != 1:
        return None
    if len(list(value.uses)) != uses:
        return None
    if list(structure.result_axes[0]) != list(range(structure.loop_count)) or structure.operand_axes[-1] is not None:
        return None
    if any(axes is None for axes in structure.operand_axes[:-1]):
        return None
    return None if any(op.operation.name == "linalg.index" for op in _block(structure.op).operations) else structure


def _composed(value: ir.Value, gather: Gather) -> ir.Value:
    """The elements of a value that a view selects, computed from views of what the value is computed from."""
    structure = _elementwise(value)
    if structure is None:
        return view_of(value, gather)
    rank, inputs, maps = len(gather.shape), [], []
    for operand, axes in zip(structure.operands[:-1], structure.operand_axes[:-1], strict=True):
        assert axes is not None
        zero = ir.AffineExpr.get_constant(0)
        chosen = [zero if axis is None else gather.map.results[axis] for axis in axes]
        loops = sorted(frozenset[int]().union(*map(used_dims, chosen)))
        places = [ir.AffineExpr.get_dim(loops.index(d)) if d in loops else zero for d in range(rank)]
        own = ir.AffineMap.get(len(loops), 0, [substituted(expr, places) for expr in chosen])
        inputs.append(_composed(operand, Gather(tuple((gather.shape[d],) for d in loops), own)))
        maps.append(projection(rank, loops))
    return _repeated(structure.op, inputs, [*maps, projection(rank, list(range(rank)))], gather.shape)


def is_composable(value: ir.Value) -> bool:
    """Whether views of a value are views of an array: of the value, or of the source of the view that it is."""
    maker = defining_op(value)
    if maker is None or maker.name != DEFINITION.full_name:
        return True
    return not gather_of(maker.attributes).joins_components


def view_of(value: ir.Value, gather: Gather) -> ir.Value:
    """A view of a value; of a view's source where the value is a view and the two are one."""
    maker = defining_op(value)
    if maker is None or maker.name != DEFINITION.full_name or not is_composable(value):
        return gathered_view(value, gather)
    return gathered_view(maker.operands[0], gather_of(maker.attributes).selected(gather))


def _repeated(
    op: ir.Operation, inputs: Sequence[ir.Value], maps: Sequence[ir.AffineMapAttr], shape: Sequence[int]
) -> ir.Value:
    """An elementwise op with the body and the attributes of another one, on other operands, over loops of a shape."""
    element = ir.RankedTensorType(op.results[0].type).element_type
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(shape))
    types = [argument.type for argument in _block(op).arguments]
    with op.location:
        init = tensor.EmptyOp(list(shape), element).result
        new = linalg.GenericOp([init.type], inputs, [init], ir.ArrayAttr.get(list(maps)), kinds)
    block = new.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    mapping = dict(zip(_block(op).arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for inner in _block(op).operations:
            clone(inner.operation, mapping)
    for name in op.attributes:
        if name.startswith("fuse."):
            new.operation.attributes[name] = op.attributes[name]
    return new.results[0]

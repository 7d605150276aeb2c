"""`fuse-collapse-contractions`: sums of products over several loops become matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.structure import OpStructure, static_extents, structure_of
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.passes.graph.collapsed_epilogues import EXPAND, collapse_readers, collapse_sums, collapsed
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.affine_expressions import substituted
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import copy_body, defining_op, erase, erase_dead
from mlirfuse.support.strides import row_major

Groups = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class FuseCollapseContractions(Pass):
    """Joins the loops of a sum of products that have one role, so that the sum is a batch of matrix products.

    Requires functions of tensor ops with static extents. The roles batch, m, n and k follow from the indexing maps, as
    in `analysis/contractions/contraction.py`; the loops of each become one. An operand that is a `fuse.gathered_view`
    numbers its elements by the joined loops, an operand whose axes are in their order is collapsed, and any other one
    becomes a gathered view, or is copied in that order where neighbours in memory would be apart in the view.
    Elementwise ops and reductions that read the result, and treat the loops of a role alike, run on the joined loops
    too, so that they can share the product's kernel, as do reductions of an operand that is collapsed. Sums that read
    no gathered view are left alone.

    ```mlir
    %windows = "fuse.gathered_view"(%x) {map = affine_map<(n, p, q, r, s, c) -> (n, p + r - 1, q + s - 1, c)>, ...}
        : (tensor<8x56x56x64xf16>) -> tensor<8x56x56x3x3x64xf16>
    %y = linalg.generic {indexing_maps = [(n, p, q, k, r, s, c) -> (n, p, q, r, s, c), (...) -> (k, r, s, c), ...]}
        ins(%windows, %w) outs(%zeros : tensor<8x56x56x128xf32>) ...
    ```
    becomes
    ```mlir
    %windows = "fuse.gathered_view"(%x) {ranks = array<i64: 3, 3>, ...} : (...) -> tensor<25088x576xf16>
    %filters = tensor.collapse_shape %w [[0], [1, 2, 3]] : tensor<128x3x3x64xf16> into tensor<128x576xf16>
    %product = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n, k), (m, n, k) -> (m, n)]} ...
    %y = tensor.expand_shape %product [[0, 1, 2], [3]] : tensor<25088x128xf32> into tensor<8x56x56x128xf32>
    ```
    """

    name: ClassVar[str] = "fuse-collapse-contractions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            number = 0
            while number < len(sums := _sums(function)):  # found anew: rewriting one rewrites its readers, sums too
                op = sums[number]
                reason = _collapse(op)
                if reason is None:
                    remarks.applied(self, "the loops of a sum of products were joined by their roles", function)
                elif reason:
                    remarks.declined(self, reason, op)
                number += 1
            if number == 0:
                remarks.declined(self, "no sum of products", function)
            erase_dead([op for op in body(function) if op.name in (DEFINITION.full_name, EXPAND)])


def _sums(function: ir.Operation) -> list[ir.Operation]:
    """The sums of products of a function, in order."""
    return [op for op in body(function) if product_of(op) is not None]


def _structure(op: ir.Operation) -> OpStructure:
    structure = structure_of(op)
    assert structure is not None  # linalg.generic has one
    return structure


@dataclass(frozen=True)
class _Sum:
    """A sum of products.

    Attributes:
        op: the op.
        axes: the loop of each axis of operand A, operand B and the result; None where there is one element.
        extents: the extent of each loop.
        groups: the loops of each role that occurs: batch, m, n, k; loops of the result come in its order.
    """

    op: ir.Operation
    axes: Sequence[Sequence[int | None]]
    extents: Sequence[int]
    groups: Groups


def _collapse(op: ir.Operation) -> str | None:
    """Rewrites a sum of products; returns why not, "" where there is nothing to do, and None where it was done."""
    found = _sum_of(op)
    if isinstance(found, str):
        return found
    makers = [defining_op(value) for value in list(op.operands)[:2]]
    gathered = any(maker is not None and maker.name == DEFINITION.full_name for maker in makers)
    if not gathered:
        return ""
    axes = found.axes[2]
    runs = _runs(axes, found.groups)
    if runs is None:
        return "the loops of one role are apart in the result"
    if any(maker is not None and maker.name == DEFINITION.full_name and not _is_plain(maker) for maker in makers):
        return "an operand is a gathered view of joined dimensions"
    with ir.InsertionPoint(op), op.location:
        operands = [_operand(found, number) for number in (0, 1)]
        result = _product(found, operands, runs)
        assembled = tensor.ExpandShapeOp(
            op.results[0].type, result, [list(run) for _, run in runs], [], list(op.results[0].type.shape)
        )
    views = [defining_op(value) for value, _ in operands]
    op.results[0].replace_all_uses_with(assembled.result)
    erase(op)
    collapse_readers(assembled.operation)
    for view in views:
        if view is not None and view.name == "tensor.collapse_shape":
            collapse_sums(view)
    return None


def _sum_of(op: ir.Operation) -> _Sum | str:
    structure = _structure(op)
    left, right = structure.operand_axes[:2]
    if left is None or right is None or structure.loop_count < 3:
        return ""
    axes = [left, right, structure.result_axes[0]]
    extents = static_extents(axes, [*list(op.operands)[:2], op.results[0]], structure.loop_count)
    if extents is None:
        return ""
    a, b, result = (set(loops) - {None} for loops in axes)
    in_result = [loop for loop in axes[2] if loop is not None]
    groups = [
        tuple(loop for loop in in_result if loop in a and loop in b),
        tuple(loop for loop in in_result if loop in a and loop not in b),
        tuple(loop for loop in in_result if loop in b and loop not in a),
        tuple(loop for loop in range(structure.loop_count) if loop not in result),
    ]
    if not groups[3] or not set(groups[3]) <= a & b or not result <= a | b:
        return "it sums over a loop of one operand"
    if not groups[1] or not groups[2]:
        return ""
    return _Sum(op, axes, extents, [group for group in groups if group])


def _runs(axes: Sequence[int | None], groups: Groups) -> list[tuple[int, tuple[int, ...]]] | None:
    """The result's axes by group, in the axes' order; None where a group's axes are not next to each other."""
    runs: list[tuple[int, tuple[int, ...]]] = []
    for axis, loop in enumerate(axes):
        number = next((n for n, group in enumerate(groups) if loop in group), None)
        if number is None:
            return None
        if runs and runs[-1][0] == number:
            runs[-1] = (number, (*runs[-1][1], axis))
        elif any(number == n for n, _ in runs):
            return None
        else:
            runs.append((number, (axis,)))
    return runs


def _is_plain(view: ir.Operation) -> bool:
    return all(rank == 1 for rank in ir.DenseI64ArrayAttr(view.attributes["ranks"]))


def _operand(found: _Sum, number: int) -> tuple[ir.Value, list[int]]:
    """An operand with one axis a group, and the group of each axis."""
    value, axes = found.op.operands[number], list(found.axes[number])
    maker = defining_op(value)
    if maker is not None and maker.name == DEFINITION.full_name:
        source, before = maker.operands[0], gather_of(maker.attributes).map
    else:
        runs = _runs(axes, found.groups)
        if runs is not None and all(tuple(axes[a] for a in run) == found.groups[n] for n, run in runs):
            return collapsed(value, [list(run) for _, run in runs]), [n for n, _ in runs]
        source, before = value, ir.AffineMap.get_identity(len(axes))
    present = [n for n, group in enumerate(found.groups) if set(group) <= set(axes)]
    for last in (*reversed(present), None):
        order = present if last is None else [*(n for n in present if n != last), last]
        gather = _gather([found.groups[n] for n in order], axes, found.extents, before)
        shape = ir.RankedTensorType(source.type).shape
        dim, run = gather.unit(shape, row_major(shape))
        if dim == len(order) - 1:
            break
    wide = run * from_mlir(ir.RankedTensorType(source.type).element_type).bytes >= WIDEST_ACCESS
    if source == value and not (dim is not None and wide):
        return _copied(found, value, axes, present), present
    return gathered_view(source, gather), order


def _copied(found: _Sum, value: ir.Value, axes: Sequence[int | None], order: Sequence[int]) -> ir.Value:
    """A copy of an operand with its axes in the order of the joined loops, collapsed to one axis a group."""
    loops = [loop for n in order for loop in found.groups[n]]
    element = ir.RankedTensorType(value.type).element_type
    maps = [projection(len(loops), [None if loop is None else loops.index(loop) for loop in axes])]
    maps.append(projection(len(loops), list(range(len(loops)))))
    init = tensor.EmptyOp([found.extents[loop] for loop in loops], element).result
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(loops))
    copy = linalg.GenericOp([init.type], [value], [init], ir.ArrayAttr.get(maps), kinds)
    block = copy.regions[0].blocks.append(element, element, arg_locs=[ir.Location.current] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    runs, start = [], 0
    for n in order:
        runs.append(list(range(start, start + len(found.groups[n]))))
        start += len(found.groups[n])
    return collapsed(copy.results[0], runs)


def _gather(groups: Groups, axes: Sequence[int | None], extents: Sequence[int], before: ir.AffineMap) -> Gather:
    """The gather of a view whose dimensions are groups of loops, from a map of the loops' axes to the source."""
    loops = [loop for group in groups for loop in group]
    zero = ir.AffineExpr.get_constant(0)
    places = [zero if loop is None else ir.AffineExpr.get_dim(loops.index(loop)) for loop in axes]
    results = [substituted(expr, places) for expr in before.results]
    basis = tuple(tuple(extents[loop] for loop in group) for group in groups)
    return Gather(basis, ir.AffineMap.get(len(loops), 0, results))


def _product(
    found: _Sum, operands: Sequence[tuple[ir.Value, list[int]]], runs: Sequence[tuple[int, tuple[int, ...]]]
) -> ir.Value:
    """The product over one loop a group: those of the result in its order, then the one that is summed over."""
    order = [*(number for number, _ in runs), len(found.groups) - 1]
    start = collapsed(found.op.operands[2], [list(run) for _, run in runs])
    values = [value for value, _ in operands]
    maps = [projection(len(order), [order.index(n) for n in groups]) for _, groups in operands]
    maps.append(projection(len(order), list(range(len(runs)))))
    kinds = [*["parallel"] * len(runs), "reduction"]
    iterators = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])
    new = linalg.GenericOp([start.type], values, [start], ir.ArrayAttr.get(maps), iterators)
    copy_body(found.op, new.operation)
    return new.results[0]

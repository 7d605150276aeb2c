"""`fuse-unroll-sums`: short sums of products that are no matrix product become elementwise ops on shifted views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.passes.gathers.gathered_ops import is_whole_selection
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import coefficients, substituted, used_dims
from mlirfuse.support.rewriting import clone, defining_op, erase, erase_dead
from mlirfuse.support.strides import row_major

MOST_TERMS = 64
"""Terms of a sum that is unrolled: each is two arguments of a kernel."""


@dataclass(frozen=True)
class FuseUnrollSums(Pass):
    """Unrolls the sum of a depthwise convolution over its taps, so that each thread adds up its own channels.

    Requires functions of tensor ops with static extents. A sum of products over a `fuse.gathered_view` is unrolled
    where it has few terms, where no loop of the result belongs to one operand alone, so that no operand's elements are
    used twice as a matrix product would, and where neighbours in memory are neighbours in the result and not in the
    sum. Each term reads two views of fixed taps: a thread reads all taps of its channels, so that it does not matter
    that the channels of one tap lie apart. The other operand may have loops of its own of which a view of the result
    reads one at each place, as the data gradient of a strided convolution has taps for each residue class of a pixel;
    it is then copied first, with taps and classes outermost, as a thread reads one class.

    ```mlir
    %windows = "fuse.gathered_view"(%x) {map = affine_map<(n, p, g, r) -> (n, p + r - 1, g)>, ...}
    %y = linalg.generic {indexing_maps = [(n, p, g, r) -> (n, p, g, r), (n, p, g, r) -> (g, r), (...) -> (n, p, g)]} ...
    ```
    becomes
    ```mlir
    %w0 = "fuse.gathered_view"(%w) {map = affine_map<(g) -> (g, 0)>, ...}
    %x0 = "fuse.gathered_view"(%x) {map = affine_map<(n, p, g) -> (n, p - 1, g)>, ...}
    %x1 = "fuse.gathered_view"(%x) {map = affine_map<(n, p, g) -> (n, p, g)>, ...}
    ...
    %y = linalg.generic {iterator_types = ["parallel", "parallel", "parallel"]} ins(%x0, %t0, %x1, %t1, %x2, %t2) ...
    ```
    """

    name: ClassVar[str] = "fuse-unroll-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            unrolled = 0
            for op in ops:
                structure = None if product_of(op) is None else structure_of(op)
                if structure is None:
                    continue
                reason = _unroll(structure)
                unrolled += reason is None
                if reason:
                    remarks.declined(self, reason, op)
            erase_dead([op for op in body(function) if op.name == DEFINITION.full_name])
            if unrolled:
                remarks.applied(self, f"{unrolled} sums over taps", function)
            else:
                remarks.declined(self, "no short sum over a gathered view", function)


def _unroll(structure: OpStructure) -> str | None:
    """Unrolls a sum; returns why not, "" where it is not meant, and None where it was done."""
    op = structure.op
    maker = defining_op(op.operands[0])
    if maker is None or maker.name != DEFINITION.full_name:
        return ""
    gather = gather_of(maker.attributes)
    left, right = structure.operand_axes[:2]
    start = defining_op(op.operands[2])
    if left is None or right is None or start is None or start.name != "linalg.fill":
        return ""
    if gather.joins_components:
        return "the view has joined dimensions"
    extents = _extents(structure)
    wide = {loop for loop, extent in enumerate(extents) if extent > 1}
    result, summed = set(structure.result_axes[0]), list(structure.reduction_loops)
    classes = _classes(op.results[0], structure.result_axes[0])
    alone = [(set(a) - set(b)) & result & wide for a, b in ((left, right), (right, left))]
    alone[1] -= classes
    if all(alone):
        return ""
    if alone[1]:
        return "the second operand has a loop of its own"
    if prod(extents[loop] for loop in summed) > MOST_TERMS:
        return f"the sum has more than {MOST_TERMS} terms"
    shape = ir.RankedTensorType(maker.operands[0].type).shape
    dim, _ = gather.unit(shape, row_major(shape))
    if dim is None or left[dim] not in result:
        return "neighbours in memory are not neighbours in the result"
    with ir.InsertionPoint(op), op.location:
        weights, kept = op.operands[1], list(right)
        if classes or not _is_composable(weights):
            weights, kept = _outermost(weights, right, [*summed, *sorted(classes)])
        new = _elementwise(structure, maker, left, weights, kept, summed, extents)
    op.results[0].replace_all_uses_with(new)
    erase(op)
    return None


def _extents(structure: OpStructure) -> list[int]:
    extents = [1] * structure.loop_count
    axes = (*structure.operand_axes[:2], structure.result_axes[0])
    values = (*list(structure.op.operands)[:2], structure.op.results[0])
    for loops, value in zip(axes, values, strict=True):
        for loop, extent in zip(loops or (), ir.RankedTensorType(value.type).shape, strict=True):
            if loop is not None:
                extents[loop] = max(extents[loop], extent)
    return extents


def _classes(value: ir.Value, axes: Sequence[int | None]) -> set[int]:
    """The loops along which a sum has a result for each residue class of its readers' places, of which a view reads one
    at each place: `fuse-compose-gathers` then makes a kernel in the order of the places.
    """
    while len(users := [use.owner.operation for use in value.uses]) == 1:
        (user,) = users
        if user.name == DEFINITION.full_name:
            gather = gather_of(user.attributes)
            if not is_whole_selection(gather, ir.RankedTensorType(value.type).shape):
                return set()
            used = [used_dims(expr) for expr in gather.map.results]
            others = [frozenset[int]().union(*used[:axis], *used[axis + 1 :]) for axis in range(len(used))]
            shared = [axis for axis, dims in enumerate(used) if dims and dims <= others[axis]]
            return {loop for axis in shared if (loop := axes[axis]) is not None}
        structure = structure_of(user) if user.name == "linalg.generic" else None
        plain = list(range(len(axes)))
        if structure is None or structure.reduction_loops or list(structure.result_axes[0]) != plain:
            return set()
        if list(structure.operand_axes[0] or ()) != plain or structure.op.operands[0] != value:
            return set()
        value = user.results[0]
    return set()


def _outermost(value: ir.Value, axes: Sequence[int | None], loops: Sequence[int]) -> tuple[ir.Value, list[int | None]]:
    """A copy of an operand whose axes along some loops come first, in their order; and the loops of all its axes."""
    type_ = ir.RankedTensorType(value.type)
    first = [list(axes).index(loop) for loop in loops if loop in axes]
    order = [*first, *(axis for axis in range(len(axes)) if axis not in first)]
    shape = [type_.shape[axis] for axis in order]
    rank = len(order)
    maps = [projection(rank, [order.index(axis) for axis in range(rank)]), projection(rank, list(range(rank)))]
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
    init = tensor.EmptyOp(shape, type_.element_type).result
    copy = linalg.GenericOp([init.type], [value], [init], ir.ArrayAttr.get(maps), kinds)
    block = copy.regions[0].blocks.append(*[type_.element_type] * 2, arg_locs=[ir.Location.current] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return copy.results[0], [axes[axis] for axis in order]


def _elementwise(
    structure: OpStructure,
    view: ir.Operation,
    axes: Sequence[int | None],
    weights: ir.Value,
    weight_axes: Sequence[int | None],
    summed: Sequence[int],
    extents: Sequence[int],
) -> ir.Value:
    """The sum as one elementwise op over the result's loops, with two operands a term."""
    op, gather = structure.op, gather_of(view.attributes)
    loops = list(structure.result_axes[0])
    shape = [extents[loop] for loop in loops if loop is not None]
    values, accesses = [], []
    identity = ir.AffineMap.get_identity(len(weight_axes))
    for tap in product(*(_upwards(gather.map, axes, loop, extents[loop]) for loop in summed)):
        at = dict(zip(summed, tap, strict=True))
        for source, map_, own in ((view.operands[0], gather.map, axes), (weights, identity, weight_axes)):
            value, kept = _fixed(source, map_, own, at, extents)
            values.append(value)
            accesses.append(projection(len(loops), [loops.index(loop) for loop in kept]))
    type_ = ir.RankedTensorType(op.results[0].type)
    init = tensor.EmptyOp(shape, type_.element_type).result
    accesses.append(projection(len(loops), list(range(len(loops)))))
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(loops))
    new = linalg.GenericOp([init.type], values, [init], ir.ArrayAttr.get(accesses), kinds)
    for name in op.attributes:
        if name.startswith("fuse."):
            new.operation.attributes[name] = op.attributes[name]
    _sum_terms(op, new.operation, [ir.RankedTensorType(v.type).element_type for v in (*values, init)])
    return new.results[0]


def _upwards(map_: ir.AffineMap, axes: Sequence[int | None], loop: int, extent: int) -> range:
    """The taps along a loop in the order of what they read in memory: as a thread's elements that read neighbours take
    these one after the other, it needs fewer of them at once than in the opposite order.
    """
    linear = [coefficients(expr, map_.n_dims) for expr in map_.results]
    moves = [found[0][axes.index(loop)] for found in linear if found is not None and loop in axes]
    return range(extent - 1, -1, -1) if sum(moves) < 0 else range(extent)


def _fixed(
    source: ir.Value, map_: ir.AffineMap, axes: Sequence[int | None], at: dict[int, int], extents: Sequence[int]
) -> tuple[ir.Value, list[int]]:
    """A view at fixed loops of a sum, and the loops of its dimensions."""
    kept = [loop for loop in axes if loop is not None and loop not in at]
    places = [
        ir.AffineExpr.get_constant(0 if loop is None else at[loop])
        if loop is None or loop in at
        else ir.AffineExpr.get_dim(kept.index(loop))
        for loop in axes
    ]
    results = [substituted(expr, places) for expr in map_.results]
    gather = Gather(tuple((extents[loop],) for loop in kept), ir.AffineMap.get(len(kept), 0, results))
    return _view_of(source, gather), kept


def _is_composable(value: ir.Value) -> bool:
    """Whether views of a value are views of an array: of the value, or of the source of the view that it is."""
    maker = defining_op(value)
    if maker is None or maker.name != DEFINITION.full_name:
        return True
    return not gather_of(maker.attributes).joins_components


def _view_of(value: ir.Value, gather: Gather) -> ir.Value:
    """A view of a value; of a view's source where the value is a view and the two are one."""
    maker = defining_op(value)
    if maker is None or maker.name != DEFINITION.full_name or not _is_composable(value):
        return gathered_view(value, gather)
    return gathered_view(maker.operands[0], gather_of(maker.attributes).selected(gather))


def _sum_terms(old: ir.Operation, new: ir.Operation, types: Sequence[ir.Type]) -> None:
    """The body: the old one for each term, from the old initial value."""
    source = old.regions[0].blocks[0]
    *inner, terminator = [op.operation for op in source.operations]
    block = new.regions[0].blocks.append(*types, arg_locs=[old.location] * len(types))
    start = defining_op(defining_op(old.operands[2]).operands[0])  # type: ignore[union-attr]
    with ir.InsertionPoint(block), old.location:
        total = arith.ConstantOp(types[-1], start.attributes["value"]).result  # type: ignore[union-attr]
        for term in range(0, len(types) - 1, 2):
            a, b = block.arguments[term], block.arguments[term + 1]
            mapping = dict(zip(source.arguments, (a, b, total), strict=True))
            for op in inner:
                clone(op, mapping)
            total = mapping[terminator.operands[0]]
        linalg.YieldOp([total])

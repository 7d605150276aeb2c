"""A batch of products whose neighbours lie side by side in memory, as the groups of a convolution do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from mlir import ir

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.loops.structure import static_extents, structure_of
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.support.affine_expressions import coefficients, used_dims
from mlirfuse.support.rewriting import defining_op, nested

RESULT = 2
"""The number of the result among the arrays of a sum of products; operands have 0 and 1."""

Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class GroupedSum:
    """A sum of products over groups, such as C[m, g, n] = sum over k of A[m, g, k] * B[g, n, k], with B as `block`.

    In two of the arrays A, B and C the group and a loop of the third one, `block`, are neighbours in memory: of a
    convolution's images the group and its channels. If several arrays are such a third one, the smallest is `block`.

    Attributes:
        op: the `linalg.generic`.
        axes: of each array the loop of each axis; None where it has one element.
        extents: the extent of each loop.
        group: the loop over groups.
        block: the number of the array that becomes block-diagonal.
        inner: of each other array the loop beside the group, which `block` has too.
    """

    op: ir.Operation
    axes: tuple[Axes, Axes, Axes]
    extents: tuple[int, ...]
    group: int
    block: int
    inner: dict[int, int]

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.extents[self.group]

    def run(self, number: int) -> range:
        """The axes of one of the other arrays from the group to its inner loop; those between have one element."""
        axes = self.axes[number]
        return range(axes.index(self.group), axes.index(self.inner[number]) + 1)

    def is_joint(self, number: int) -> bool:
        """Whether an array is no gathered view, and its group and inner loop are one run of its axes."""
        axes = self.axes[number]
        return all(axes[a] is None or self.extents[axes[a] or 0] == 1 for a in self.run(number)[1:-1])


def grouped_sum(op: ir.Operation) -> GroupedSum | str:
    """An op as a sum over groups that may be merged; why not, or "" where it is no batch of products."""
    loops = product_loops(op)
    if loops is None:
        return ""
    axes, extents = loops
    left, right, result = axes
    batch = [loop for loop in result if loop in left and loop in right and loop is not None and extents[loop] > 1]
    if not batch:
        return ""
    if any(is_view(value) and any(len(b) != 1 for b in view_of(value)[1].basis) for value in arrays(op)[:RESULT]):
        return "an operand is a gathered view of joined dimensions"
    declined = "neighbouring products are no neighbours in memory"
    sizes = [_elements(value) for value in arrays(op)]
    for block, group in product(sorted(range(3), key=lambda number: sizes[number]), batch):
        found = GroupedSum(op, axes, extents, group, block, {})
        inner = {number: loop for number in range(3) if number != block for loop in _inner_loops(found, number)}
        if len(inner) == 2:
            if any(_has_windows(op, axes, number, group) for number in (0, 1)):
                return replace(found, inner=inner)
            declined = "no operand has windows, and infinities of a plain batch stay in their product"
    return declined


def product_loops(op: ir.Operation) -> tuple[tuple[Axes, Axes, Axes], tuple[int, ...]] | None:
    """Of a sum of products from a constant the loop of each axis of operand A, operand B and the result, and the extent
    of each loop; None for another op, and for extents that are not known.
    """
    structure = None if product_of(op) is None else structure_of(op)
    if structure is None:
        return None
    left, right = structure.operand_axes[:2]
    start = defining_op(op.operands[RESULT])
    if left is None or right is None or start is None or start.name != "linalg.fill":
        return None
    axes = (left, right, structure.result_axes[0])
    extents = static_extents(axes, arrays(op), structure.loop_count)
    return None if extents is None else (axes, tuple(extents))


def arrays(op: ir.Operation) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Operand A, operand B and the result."""
    return op.operands[0], op.operands[1], op.results[0]


def is_view(value: ir.Value) -> bool:
    """Whether a value is a gathered view."""
    maker = defining_op(value)
    return maker is not None and maker.name == DEFINITION.full_name


def view_of(value: ir.Value) -> tuple[ir.Value, Gather]:
    """A value as a gathered view: its source, and how it lies there."""
    maker = defining_op(value)
    if maker is not None and is_view(value):
        return maker.operands[0], gather_of(maker.attributes)
    shape = ir.RankedTensorType(value.type).shape
    return value, Gather(tuple((extent,) for extent in shape), ir.AffineMap.get_identity(len(shape)))


def _has_windows(op: ir.Operation, axes: tuple[Axes, Axes, Axes], number: int, group: int) -> bool:
    """Whether an operand is a gathered view with an index that several loops beside the group share, as the rows of an
    image that are the sum of a row of the result and one of the filter.
    """
    value, dim = arrays(op)[number], axes[number].index(group)
    if not is_view(value):
        return False
    indices = (used_dims(expr) for expr in view_of(value)[1].map.results)
    return any(len(dims) > 1 and dim not in dims for dims in indices)


def _elements(value: ir.Value) -> int:
    """The elements of an array, or of a gathered view's source."""
    return prod(ir.RankedTensorType(view_of(value)[0].type).shape)


def _inner_loops(found: GroupedSum, number: int) -> Iterator[int]:
    """The loops of an array, of several elements, which `block` has too and the third array has not, and along which
    the array is contiguous beside the group.
    """
    axes, (third,) = found.axes[number], {0, 1, 2} - {number, found.block}
    for loop in axes:
        if loop is None or loop not in found.axes[found.block] or loop in found.axes[third] or found.extents[loop] == 1:
            continue
        if is_view(arrays(found.op)[number]) and number != RESULT:
            beside = _beside_in_view(found, number, loop)
        else:
            group, at = axes.index(found.group), axes.index(loop)
            beside = group < at == len(axes) - 1
            if any(e is not None and found.extents[e] > 1 for e in axes[group + 1 : at]):
                beside = beside and number == RESULT and _put_in_order(found.op, group, at, found.extents[loop])
        if beside:
            yield loop


def _put_in_order(op: ir.Operation, group: int, inner: int, extent: int) -> bool:
    """Whether one gathered view reads an op's result, or casts of it, and has axes that are apart side by side."""
    while (cast := cast_of(op)) is not None:
        op = cast
    readers = [use.owner.operation for use in op.results[0].uses]
    return len(readers) == 1 and joint_index(readers[0], group, inner, extent) is not None


def _beside_in_view(found: GroupedSum, number: int, loop: int) -> bool:
    """Whether a gathered view has the group's elements along a loop side by side along one axis of its source."""
    source, gather = view_of(arrays(found.op)[number])
    axes: Sequence[int | None] = found.axes[number]
    group, inner = axes.index(found.group), axes.index(loop)
    moved = [n for n, expr in enumerate(gather.map.results) if used_dims(expr) & {group, inner}]
    if moved != [ir.RankedTensorType(source.type).rank - 1]:
        return False
    linear = coefficients(gather.map.results[moved[0]], len(axes))
    return linear is not None and linear[0][inner] == 1 and linear[0][group] == found.extents[loop]


def cast_of(op: ir.Operation) -> ir.Operation | None:
    """The only reader of an op's result, if it is elementwise in this alone and keeps its order."""
    uses = list(op.results[0].uses)
    reader = uses[0].owner.operation if len(uses) == 1 else None
    if reader is None or reader.name != "linalg.generic" or len(reader.operands) != 2 or len(reader.results) != 1:
        return None
    identity = ir.AffineMap.get_identity(ir.RankedTensorType(op.results[0].type).rank)
    maps = [m.value for m in ir.ArrayAttr(reader.attributes["indexing_maps"])]
    if any(m != identity for m in maps) or any(inner.name == "linalg.index" for inner in nested(reader)):
        return None
    return reader if reader.operands[0] == op.results[0] else None


def joint_index(reader: ir.Operation, group: int, inner: int, extent: int) -> ir.AffineExpr | None:
    """The index that a gathered view divides into a group and one of so many elements inside of it, along these axes of
    its source; None for any other reader.
    """
    if reader.name != DEFINITION.full_name:
        return None
    gather = gather_of(reader.attributes)
    at = (gather.map.results[group], gather.map.results[inner])
    dims = map(ir.AffineExpr.get_dim, range(gather.map.n_dims if not gather.inside else 0))
    divided = ((dim, ir.AffineExpr.get_floor_div(dim, extent), ir.AffineExpr.get_mod(dim, extent)) for dim in dims)
    return next((dim for dim, *parts in divided if tuple(parts) == at), None)

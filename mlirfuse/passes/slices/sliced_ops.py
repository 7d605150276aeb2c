"""Slices of computed values, made by ops on slices of what these ops read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.loops.maps import projected_axes, repeats_a_loop
from mlirfuse.analysis.loops.structure import reduces
from mlirfuse.analysis.memory.host_views import RESHAPES, extents_of
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.dialect.copies import COPIED
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase, ops_named
from mlirfuse.tiling.tiles import index

_DYNAMIC = ir.ShapedType.get_dynamic_size()
SLICE, TRANSPOSE = "tensor.extract_slice", "linalg.transpose"


@dataclass(frozen=True)
class Range:
    """Elements of one axis: so many, from one on, so many apart."""

    start: int
    count: int
    step: int = 1

    def within(self, outer: Range) -> Range:
        """The range in the axis that an outer range is of."""
        return Range(outer.start + self.start * outer.step, self.count, self.step * outer.step)


BACKWARDS = Range(_DYNAMIC, _DYNAMIC, -1)
"""All elements of an axis in the opposite order, as many as run time says."""

Ranges = tuple[Range | None, ...]
"""What a slice has of each axis; None for all of it."""

Value = tuple[ir.Value, Ranges]
"""A slice of a value."""


def ranges_of(op: ir.Operation, *, backwards: bool = False, run_time: bool = False) -> Ranges | None:
    """The ranges of a `tensor.extract_slice`; None where one is known at run time only, unless `run_time` asks for
    `BACKWARDS`, or has its elements in the opposite order, unless `backwards` asks for these too.
    """
    offsets, sizes, steps = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    found: list[Range | None] = []
    for start, count, step, extent in zip(offsets, sizes, steps, extents_of(op.operands[0]), strict=True):
        if (start, step) == (0, 1) and count == (_DYNAMIC if extent is None else extent):
            found.append(None)
        elif run_time and extent is None and Range(start, count, step) == BACKWARDS:
            found.append(BACKWARDS)
        elif _DYNAMIC in (start, count, step) or (step < 1 and not backwards):
            return None
        else:
            found.append(Range(start, count, step))
    return tuple(found)


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an op computes each element of its one result from elements of what it reads, wherever that lies."""
    if op.name != "linalg.generic" or len(op.results) != 1 or COPIED in op.attributes or OPERATION in op.attributes:
        return False
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    loops = [expr.position for expr in maps[-1].value.results if isinstance(expr, ir.AffineDimExpr)]
    if reduces(op) or sorted(loops) != list(range(maps[-1].value.n_dims)) or ops_named(op, "linalg.index"):
        return False
    if any(repeats_a_loop(each) for each in maps):
        return False
    return all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in maps for e in m.value.results)


class SlicedOps:
    """Slices of values: of an op's result by that op on slices of its operands, as far as ops are elementwise.

    Reshapes, transposes, slices of slices, and filled arrays are followed too. A slice of a gathered view is such a
    view of fewer elements. Everything else is sliced itself. A slice that is asked for twice is the same value.

    Args:
        follows: which elementwise ops are computed on slices.
    """

    def __init__(self, follows: Callable[[ir.Operation], bool] = is_elementwise):
        self._follows = follows
        self._made: dict[Value, ir.Value] = {}

    @property
    def count(self) -> int:
        """Slices made so far."""
        return len(self._made)

    def of(self, value: ir.Value, ranges: Ranges) -> ir.Value:
        """A slice of a value; new ops stand behind the value's own."""
        if not any(ranges):
            return value
        if (value, ranges) not in self._made:
            self._made[value, ranges] = self._build(value, ranges)
        return self._made[value, ranges]

    def replace(self, slices: Mapping[ir.Operation, Value]) -> None:
        """Puts slices of values in the place of ops that slice them, or reshapes of them, and erases these ops."""
        for op, slice_ in slices.items():
            op.results[0].replace_all_uses_with(self.of(*slice_))
            erase(op)

    def sources(self, value: ir.Value, ranges: Ranges) -> list[Value] | None:
        """What a slice is computed of: slices of the operands of the op that makes the value, of which some may be
        whole; None for a value that is sliced itself.
        """
        op = defining_op(value)
        if op is None:
            return None
        if op.name == SLICE:
            outer = ranges_of(op, backwards=True, run_time=True)
            return None if outer is None else [(op.operands[0], _composed(ranges, outer))]
        if op.name == TRANSPOSE:
            own = dict(zip(_permutation(op), ranges, strict=True))
            return [(op.operands[0], tuple(own[axis] for axis in range(len(ranges))))]
        if op.name in RESHAPES:
            before = reshaped_ranges(op, ranges)
            return None if before is None else [(op.operands[0], before)]
        if op.name == "linalg.fill":
            return []
        if op.name == "linalg.generic" and self._follows(op):
            return list(zip(op.operands, _operand_ranges(op, ranges), strict=True))
        return None

    def _build(self, value: ir.Value, ranges: Ranges) -> ir.Value:
        op, sources = defining_op(value), self.sources(value, ranges)
        if sources is None and (view := self._gathered(value, ranges)) is not None:
            return view
        if op is None or sources is None:
            return extracted(value, ranges)
        if op.name == SLICE:
            return self.of(*sources[0])
        operands = [self.of(*source) for source in sources if isinstance(source[0].type, ir.RankedTensorType)]
        with ir.InsertionPoint.after(op), op.location:
            type_ = _sliced_type(value, ranges)
            if op.name == TRANSPOSE:
                init = _empty(op.operands[1], ranges)
                return linalg.transpose(operands[0], outs=[init], permutation=_permutation(op)).result[0]
            if op.name == "linalg.fill":
                return linalg.fill(op.operands[0], outs=[_empty(value, ranges)])
            if op.name in RESHAPES:
                if op.name == "tensor.collapse_shape":
                    return tensor.CollapseShapeOp(type_, operands[0], reassociation(op)).result
                sizes = list(op.operands)[1:]  # of dimensions that are known at run time, which stay whole
                return tensor.ExpandShapeOp(type_, operands[0], reassociation(op), sizes, list(type_.shape)).result
            return self._generic(op, sources, type_)

    def _generic(self, op: ir.Operation, sources: Sequence[Value], type_: ir.RankedTensorType) -> ir.Value:
        """The op on slices of its operands."""
        operands = [self.of(*source) for source in sources[:-1]]
        init, ranges = sources[-1]
        if (maker := defining_op(init)) is not None and maker.name == "tensor.empty":
            operands.append(_empty(init, ranges))
        else:
            operands.append(self.of(init, ranges))
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = ir.Operation.create(op.name, [type_], operands, attributes, regions=1)
        copy = op.clone()
        copy.regions[0].blocks[0].append_to(new.regions[0])
        copy.erase()
        return new.results[0]

    def _gathered(self, value: ir.Value, ranges: Ranges) -> ir.Value | None:
        """The gathered view of a slice of another one, or of a reshape of one, right behind it; None for any other
        value, and where dimensions join components that a slice has parts of.
        """
        view = defining_op(value)
        while view is not None and view.name in RESHAPES:
            view = defining_op(view.operands[0])
        if view is None or view.name != DEFINITION.full_name:
            return None
        gather = gather_of(view.attributes)
        if view.results[0] != value:
            gather = gather.reshaped(ir.RankedTensorType(value.type).shape)
        if gather.joins_components:
            return None
        parts = [own or Range(0, extent) for own, extent in zip(ranges, gather.components, strict=True)]
        with ir.InsertionPoint.after(view), view.location:
            return gathered_view(view.operands[0], gather.selected(gather_of_ranges(parts)))


def extracted(value: ir.Value, ranges: Ranges) -> ir.Value:
    """A `tensor.extract_slice`, right behind the value."""
    op = defining_op(value)
    place = ir.InsertionPoint.at_block_begin(value.owner) if op is None else ir.InsertionPoint.after(op)
    with place, value.location:
        sizes = {axis: tensor.dim(value, index(axis)) for axis, n in enumerate(extents_of(value)) if n is None}
        last = [arith.subi(sizes[axis], index(1)) for axis, own in enumerate(ranges) if own == BACKWARDS]
        whole = [Range(0, _DYNAMIC if extent is None else extent) for extent in extents_of(value)]
        parts = [own or every for own, every in zip(ranges, whole, strict=True)]
        return tensor.ExtractSliceOp(
            _sliced_type(value, ranges),
            value,
            last,
            list(sizes.values()),
            [],
            [part.start for part in parts],
            [part.count for part in parts],
            [part.step for part in parts],
        ).result


def gather_of_ranges(parts: Sequence[Range]) -> Gather:
    """The gather of a slice as a view, by what it has of each axis."""
    places = [ir.AffineExpr.get_dim(axis) * part.step + part.start for axis, part in enumerate(parts)]
    return Gather(tuple((part.count,) for part in parts), ir.AffineMap.get(len(parts), 0, places))


def elements_of(value: ir.Value, ranges: Ranges, unknown: int) -> int:
    """Elements of a slice, with a number for extents that are known at run time."""
    pairs = zip(ranges, extents_of(value), strict=True)
    return prod(own.count if own and own != BACKWARDS else extent or unknown for own, extent in pairs)


def is_reshape(op: ir.Operation) -> bool:
    """Whether an op gives a value another shape."""
    return op.name in RESHAPES


def is_rearranged(op: ir.Operation) -> bool:
    """Whether an op gives a value another shape, or order of dimensions."""
    return is_reshape(op) or op.name == TRANSPOSE


def readers(op: ir.Operation, is_view: Callable[[ir.Operation], bool] = is_reshape) -> Iterator[ir.Operation]:
    """The ops that read a result, through views of it: through reshapes, for one."""
    for use in op.results[0].uses:
        user = use.owner.operation
        yield from readers(user, is_view) if is_view(user) else (user,)


def behind(
    ops: Iterable[ir.Operation],
    takes: Callable[[ir.Operation], bool],
    is_view: Callable[[ir.Operation], bool] = is_reshape,
) -> list[ir.Operation]:
    """The ops that need results of some, through views, and through such ops alone as `takes` accepts."""
    found: dict[ir.Operation, None] = {}
    open_ = list(ops)
    while open_:
        for reader in readers(open_.pop(), is_view):
            if reader not in found and takes(reader):
                found[reader] = None
                open_.append(reader)
    return list(found)


def slice_of(reader: ir.Operation, op: ir.Operation, sliced: SlicedOps, *, backwards: bool = False) -> Value | None:
    """What a reader of an op's result, or of a reshape of it, slices; None where that is no slice of the result, or has
    its elements in the opposite order, unless `backwards` asks for these too.
    """
    ranges = ranges_of(reader, backwards=backwards, run_time=backwards) if reader.name == SLICE else None
    if ranges is None:
        return None
    source = found = (reader.operands[0], ranges)
    while source[0] != op.results[0]:
        before = sliced.sources(*source)
        if before is None:
            return None
        (source,) = before
    return found


def slices_of(value: ir.Value) -> Iterator[tuple[ir.Operation, Ranges]]:
    """The slices that are read of a value, whose ranges are known."""
    for use in value.uses:
        op = use.owner.operation
        if op.name == SLICE and use.operand_number == 0 and (ranges := ranges_of(op, backwards=True)) is not None:
            yield op, ranges


def _composed(inner: Ranges, outer: Ranges) -> Ranges:
    return tuple(
        i if o is None else o if i is None else None if i == o == BACKWARDS else i.within(o)
        for i, o in zip(inner, outer, strict=True)
    )


def _permutation(op: ir.Operation) -> list[int]:
    """For each axis of a transpose's result, that of its source."""
    return list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))


def _operand_ranges(op: ir.Operation, ranges: Ranges) -> list[Ranges]:
    """What each operand has of a slice of an elementwise op's result."""
    *maps, written = ir.ArrayAttr(op.attributes["indexing_maps"])
    of_loop = dict(zip(projected_axes(written), ranges, strict=True))
    axes = [projected_axes(each) for each in (*maps, written)]
    return [tuple(None if loop is None else of_loop.get(loop) for loop in own) for own in axes]


def reshaped_ranges(op: ir.Operation, ranges: Ranges) -> Ranges | None:
    """The ranges in the source of a reshape; None where a slice of the result is no slice of the source."""
    expands = op.name == "tensor.expand_shape"
    sides = extents_of(op.results[0] if expands else op.operands[0])
    found: list[Range | None] = []
    for number, group in enumerate(reassociation(op)):
        own = [ranges[axis] for axis in group] if expands else [ranges[number]]
        if not any(own) or len(group) == 1:
            found += own if len(group) == 1 else [None] * (1 if expands else len(group))
            continue
        if None in [sides[axis] for axis in group]:
            return None
        extents = [sides[axis] or 1 for axis in group]
        outer = next((n for n, extent in enumerate(extents) if extent != 1), 0)
        inner = prod(extents[outer + 1 :])
        if expands:
            part = own[outer]
            if any(each for n, each in enumerate(own) if n != outer) or (part and inner > 1 and part.step != 1):
                return None
            found.append(part and Range(part.start * inner, part.count * inner, part.step))
            continue
        (part,) = own
        if part and inner > 1 and (part.step != 1 or part.start % inner or part.count % inner):
            return None
        outermost = part and Range(part.start // inner, part.count // inner, part.step)
        found += [outermost if n == outer else None for n in range(len(group))]
    return tuple(found)


def _sliced_type(value: ir.Value, ranges: Ranges) -> ir.RankedTensorType:
    type_ = ir.RankedTensorType(value.type)
    shape = [own.count if own else extent for own, extent in zip(ranges, type_.shape, strict=True)]
    return ir.RankedTensorType.get(shape, type_.element_type)


def _empty(value: ir.Value, ranges: Ranges) -> ir.Value:
    """A `tensor.empty` like a slice of a value."""
    type_ = _sliced_type(value, ranges)
    sizes = [tensor.dim(value, index(axis)) for axis, extent in enumerate(type_.shape) if extent == _DYNAMIC]
    return ir.Operation.create("tensor.empty", [type_], sizes).results[0]

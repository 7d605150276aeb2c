"""Places in what a view, a slice or a reshape is of, by places in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlirfuse.analysis.memory.host_views import extents_of
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.passes.slices.sliced_ops import SLICE, Range, gather_of_ranges, ranges_of
from mlirfuse.support.reshapes import reassociation


def places_before(op: ir.Operation, gather: Gather) -> Gather:
    """The places in what a view, a slice or a reshape is of, by places in it."""
    if op.name == DEFINITION.full_name:
        return gather_of(op.attributes).selected(gather)
    if op.name == SLICE:
        parts = [own or Range(0, n or 0) for own, n in zip(_ranges(op), extents_of(op.operands[0]), strict=True)]
        return gather_of_ranges(parts).selected(gather)
    return _before_reshape(op, gather)


def _ranges(op: ir.Operation) -> Sequence[Range | None]:
    found = ranges_of(op, backwards=True)
    assert found is not None  # a step has been asked for
    return found


def _before_reshape(op: ir.Operation, gather: Gather) -> Gather:
    """The gather of a reshape's source, by that of its result."""
    expands, own = op.name == "tensor.expand_shape", list(gather.map.results)
    extents = [n or 0 for n in extents_of(op.results[0] if expands else op.operands[0])]
    found: list[ir.AffineExpr] = []
    for number, group in enumerate(reassociation(op)):
        if expands:
            place: ir.AffineExpr = ir.AffineExpr.get_constant(0)
            for axis in group:
                place = place * extents[axis] + own[axis] if extents[axis] != 1 else place
            found.append(place)
            continue
        large = [axis for axis in group if extents[axis] != 1]
        for axis in group:
            inner = prod(extents[a] for a in group if a > axis)
            if axis not in large:
                found.append(ir.AffineExpr.get_constant(0))
            elif large == [axis]:
                found.append(own[number])
            else:
                rest = ir.AffineExpr.get_floor_div(own[number], inner) if inner > 1 else own[number]
                found.append(rest if axis == large[0] else ir.AffineExpr.get_mod(rest, extents[axis]))
    return Gather(gather.basis, ir.AffineMap.get(gather.map.n_dims, 0, found))

"""Where one thread's accesses to a view through an affine map lie in the view's source: indices, and what must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.distribution.threads.scalars import add, multiply
from mlirfuse.support.affine_expressions import bounds, operands
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.memory import permuted, strides


def users_of(view: ir.Value) -> list[tuple[ir.Operation, Sequence[int]]]:
    """The ops that use a view, also through transposes, with the view's axis of each axis that they see."""

    def find(value: ir.Value, axes: Sequence[int]) -> list[tuple[ir.Operation, Sequence[int]]]:
        found: list[tuple[ir.Operation, Sequence[int]]] = []
        for use in list(value.uses):
            user = use.owner.operation
            if user.name != "memref.transpose":
                found.append((user, axes))
                continue
            order = [e.position for e in ir.AffineMapAttr(user.attributes["permutation"]).value.results]
            found += find(user.results[0], [axes[n] for n in order])
        return found

    return find(view, list(range(ir.MemRefType(view.type).rank)))


def erase_transposes(value: ir.Value) -> None:
    """Erases the transposes of a view, which nobody else uses."""
    for use in list(value.uses):
        user = use.owner.operation
        if user.name == "memref.transpose":
            erase_transposes(user.results[0])
            erase(user)


def place_of(
    gather: Gather, index: Mapping[int, ir.Value], shape: Sequence[int]
) -> tuple[list[ir.Value], ir.Value | None]:
    """The index in a source of that shape, and the condition under which it is one; None where it always is.

    Args:
        gather: how the view's elements lie in the source.
        index: the index in the view, by axis.
        shape: of the source.
    """
    type_ = ir.IntegerType.get_signless(gather.index_bits)
    components: list[ir.Value] = []
    for axis, group in enumerate(gather.basis):
        components += _components(index[axis], group, type_)
    extents = gather.components
    result, inside = [], []
    for expr, extent in zip(gather.map.results, shape, strict=True):
        low, high = bounds(expr, extents)
        value = _emit(expr, components, extents, type_)
        if low < 0 or high >= extent:
            inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, value, _number(extent, type_)).result)
        result.append(arith.IndexCastOp(ir.IndexType.get(), value).result)
    return result, reduce(lambda a, b: arith.AndIOp(a, b).result, inside) if inside else None


def with_unit_last(source: ir.Value, at: list[ir.Value], width: int) -> tuple[ir.Value, list[ir.Value]]:
    """A view of the source whose contiguous axis, as `Gather.unit` takes it, is the last one; and the index in it.

    An access that goes on in the next row is one of the source as a single row.
    """
    type_ = ir.MemRefType(source.type)
    steps = strides(type_)
    if 1 not in steps:
        return source, at
    if type_.shape[steps.index(1)] % width:
        return _as_row(source, [step or 0 for step in steps], at)
    axis = steps.index(1)
    order = [*(n for n in range(len(steps)) if n != axis), axis]
    return permuted(source, order), [at[n] for n in order]


def _as_row(source: ir.Value, steps: Sequence[int], at: list[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """The source as one row, whose strides are known, and the index in it."""
    type_ = ir.MemRefType(source.type)
    size = 1 + sum((extent - 1) * step for extent, step in zip(type_.shape, steps, strict=True))
    row = ir.MemRefType.get([size], type_.element_type, ir.StridedLayoutAttr.get(0, [1]), type_.memory_space)
    cast = memref.ReinterpretCastOp(row, source, [], [], [], [0], [size], [1]).result
    place = reduce(add, [multiply(index, step) for index, step in zip(at, steps, strict=True)])
    return cast, [place]


def _number(value: int, type_: ir.Type) -> ir.Value:
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _components(index: ir.Value, group: Sequence[int], type_: ir.Type) -> list[ir.Value]:
    """The components of an index of the view, the last one fastest, as integers of a type."""
    rest = arith.IndexCastOp(type_, index).result
    found: list[ir.Value] = []
    for position in reversed(range(len(group))):
        extent = group[position]
        if extent == 1:
            found.insert(0, _number(0, type_))
            continue
        if not any(n > 1 for n in group[:position]):
            found.insert(0, rest)
            rest = _number(0, type_)
            continue
        found.insert(0, arith.RemUIOp(rest, _number(extent, type_)).result)
        rest = arith.DivUIOp(rest, _number(extent, type_)).result
    return found


def _emit(expr: ir.AffineExpr, components: Sequence[ir.Value], extents: Sequence[int], type_: ir.Type) -> ir.Value:
    """An expression's value as an integer of a type; divisions round down also where the dividend is negative."""
    if isinstance(expr, ir.AffineConstantExpr):
        return _number(ir.AffineConstantExpr(expr).value, type_)
    if isinstance(expr, ir.AffineDimExpr):
        return components[ir.AffineDimExpr(expr).position]
    left, right = operands(expr)
    a = _emit(left, components, extents, type_)
    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        b = _emit(right, components, extents, type_)
        build = arith.AddIOp if isinstance(expr, ir.AffineAddExpr) else arith.MulIOp
        value: ir.Value = build(a, b).result
        return value
    by = ir.AffineConstantExpr(right).value
    low, _ = bounds(left, extents)
    steps = -(low // by) if low < 0 else 0  # makes the dividend positive
    shifted = arith.AddIOp(a, _number(steps * by, type_)).result if steps else a
    if isinstance(expr, ir.AffineModExpr):
        found: ir.Value = arith.RemUIOp(shifted, _number(by, type_)).result
        return found
    quotient: ir.Value = arith.DivUIOp(shifted, _number(by, type_)).result
    return arith.SubIOp(quotient, _number(steps, type_)).result if steps else quotient

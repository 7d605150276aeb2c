"""Coordinates of copies by tensor maps from gathered views: windows of images, and boxes of filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.memory.mapped_views import MappedView, mapped_view
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of
from mlirfuse.errors import PassError
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op


def gathered(op: ir.Operation) -> ir.Operation | None:
    """The `fuse.gathered_view` that an asynchronous copy reads; None where it reads an argument."""
    maker = defining_op(op.operands[0])
    return maker if maker is not None and maker.name == DEFINITION.full_name else None


def view_of(view: ir.Operation) -> MappedView:
    """How tensor maps describe a view; raises `PassError` where they do not."""
    source = ir.MemRefType(view.operands[0].type)
    found = mapped_view(gather_of(view.attributes), source.shape, from_mlir(source.element_type).bytes)
    if isinstance(found, str):
        raise PassError(f"no tensor map describes a gathered view: {found}", where=view)
    return found


class Places:
    """Coordinates of the copies of one tile, which begins at an index of the view.

    Args:
        view: the gathered view.
        indices: the tile's first index in the view.
        first_row: rows of the tile before the first one that is copied; None for none.
    """

    def __init__(self, view: ir.Operation, indices: Sequence[ir.Value], first_row: ir.Value | None):
        self._gather, self._mapped = gather_of(view.attributes), view_of(view)
        row = indices[self._mapped.row]
        row = row if first_row is None else arith.addi(row, first_row)
        self._rows = _components(row, self._gather.basis[self._mapped.row], self._gather.index_bits)
        self._column = indices[self._mapped.column]
        self._group = None if self._mapped.batch is None else indices[self._mapped.batch]

    def of_columns(self, column: int) -> tuple[list[ir.Value], list[ir.Value]]:
        """The coordinates of the columns from that one of the tile on, the innermost first; and offsets in windows."""
        i16 = ir.IntegerType.get_signless(16)
        start = arith.addi(self._column, arith.constant(ir.IndexType.get(), column)) if column else self._column
        group = self._gather.basis[self._mapped.column]
        *taps, channel = _components(start, group, self._gather.index_bits)
        windows = self._mapped.im2col
        if windows is None:
            return [channel, self._rows[-1], *map(self._place([*taps, channel]), self._mapped.axes[2:])], []
        if self._group is not None:
            first = arith.muli(arith.index_cast(channel.type, self._group), _i32(self._mapped.apart))
            channel = arith.addi(first, channel)
        image, *pixels = self._rows
        spatial = [
            arith.addi(arith.muli(pixel, _i32(step)), _i32(lower))
            for pixel, step, lower in zip(pixels, windows.steps, windows.lower, strict=True)
        ]
        offsets = []
        for tap, count, dilation in zip(taps, group, windows.dilations, strict=False):
            offset = arith.muli(tap, _i32(dilation))
            if dilation < 0:
                offset = arith.addi(offset, _i32(-dilation * (count - 1)))
            offsets.append(arith.trunci(i16, offset))
        return [channel, *reversed(spatial), image], offsets[::-1]

    def _place(self, columns: Sequence[ir.Value]) -> Callable[[int], ir.Value]:
        """A function that emits the coordinate of a box along an axis of the source."""
        parts = (self._rows, columns) if self._mapped.row == 0 else (columns, self._rows)
        components = [value for part in parts for value in part]

        def emit(axis: int) -> ir.Value:
            found = coefficients(self._gather.map.results[axis], len(components))
            assert found is not None  # a box's map is linear
            terms = [
                value if factor == 1 else arith.muli(value, _i32(factor))
                for factor, value in zip(found[0], components, strict=True)
                if factor
            ]
            terms += [_i32(found[1])] if found[1] or not terms else []
            return reduce(arith.addi, terms)

        return emit


def _i32(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)


def _components(index: ir.Value, group: Sequence[int], bits: int) -> list[ir.Value]:
    """The components of an index of the view as i32; the first one is past its end where the index is.

    The index itself may need more bits, and is divided as an integer of so many.
    """
    type_, i32 = ir.IntegerType.get_signless(bits), ir.IntegerType.get_signless(32)
    rest = arith.index_cast(type_, index)
    found: list[ir.Value] = []
    for position in reversed(range(len(group))):
        if position == 0:
            found.insert(0, rest)
        elif group[position] == 1:
            found.insert(0, arith.constant(type_, 0))
        else:
            extent = arith.constant(type_, group[position])
            found.insert(0, arith.remui(rest, extent))
            rest = arith.divui(rest, extent)
    return found if bits == i32.width else [arith.trunci(i32, value) for value in found]

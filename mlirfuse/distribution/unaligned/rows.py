"""Contiguous buffers of rows, as seen from layouts that shift or realign rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.distribution.access import Access
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments
from mlirfuse.distribution.threads.scalars import add, constant
from mlirfuse.errors import PassError
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT, WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir


@dataclass(frozen=True)
class Rows:
    """A contiguous buffer whose rows run along its last axis, in a layout for rows of any alignment.

    Attributes:
        flat: the buffer as one run of elements.
        size: number of elements of the run.
        start: index in the run of the thread's row.
        shift: the shift of the row in elements; 0 where rows are realigned.
        in_whole_vectors: whether the layout shifts rows that are whole numbers of fragments; fragments are then
            aligned in memory, and each is entirely inside or outside its row.
        columns: elements of a row.
        width: elements of a fragment.
        window: elements of one access.
        aligned: whether fragments are aligned in memory.
        streaming: whether the kernel accesses the data once only.
        in_order: whether loads keep their place in program order.
    """

    flat: ir.Value
    size: ir.Value
    start: ir.Value
    shift: ir.Value
    in_whole_vectors: bool
    columns: int
    width: int
    window: int
    aligned: bool
    streaming: bool
    in_order: bool

    @property
    def window_type(self) -> ir.VectorType:
        return ir.VectorType.get([self.window], ir.MemRefType(self.flat.type).element_type)

    @property
    def bytes(self) -> int:
        """Bytes of one access."""
        return self.window * from_mlir(self.window_type.element_type).bytes


def rows_of(
    d: Distributor, access: Access, tile: Fragments, indices: Sequence[ir.Value], *, rematerialized: bool = False
) -> Rows:
    """The rows that a transfer accesses; the first contiguous rows of a kernel fix the layout's shift.

    Args:
        d: the kernel.
        access: the transfer.
        tile: the transfer's fragments.
        indices: indices of the thread's row, along each axis of the buffer but the last.
        rematerialized: whether values derived from `indices` must not be computed before `indices`.

    Raises:
        PassError: the rows are not contiguous, or not aligned.
    """
    buffer_type, axis = access.type, access.vector_axis
    dtype, dynamic = from_mlir(buffer_type.element_type), ir.ShapedType.get_dynamic_size()
    window = min(tile.width, WIDEST_ACCESS // dtype.bytes)
    align = d.argument_attributes.get(access.buffer, {}).get(ALIGN)
    base = DEFAULT_ALIGNMENT if align is None else ir.IntegerAttr(align).value
    contiguous = axis == buffer_type.rank - 1 and not isinstance(buffer_type.layout, ir.StridedLayoutAttr)
    if axis is None or not contiguous or axis in access.clipped or base < window * dtype.bytes or dtype.kind == "bool":
        raise PassError(
            f"{buffer_type} has no rows, whole and aligned, that a layout could shift or realign",
            where=ir.Location.current,
        )
    extents = [access.extent(n) for n in range(buffer_type.rank)]
    terms = [arith.MulIOp(index, _product(extents[n + 1 :])).result for n, index in enumerate(indices)]
    start = _sum(terms)
    position = (tuple(access.dims), tuple(access.offsets[:axis]))
    whole = all(n in access.dims for n in range(d.layout.rank) if d.layout.extents[n] > 1)
    unit = max(d.layout.shift_to, default=tile.width)
    if d.layout.is_shifted and d.row_shift is None and whole:
        d.row_shift, d.shifted_like = modulo(start, unit), position
    aligned = d.shifted_like == position if d.layout.is_shifted else not terms
    shift = d.shift() if d.layout.is_shifted else constant(0)
    if d.layout.is_shifted and aligned and rematerialized:
        shift = modulo(start, unit)
    shape = list(buffer_type.shape)
    flat = access.buffer
    if buffer_type.rank > 1:
        flat_type = ir.MemRefType.get([dynamic if dynamic in shape else prod(shape)], buffer_type.element_type)
        flat = memref.CollapseShapeOp(flat_type, access.buffer, [list(range(buffer_type.rank))]).result
    return Rows(
        flat=flat,
        size=_product(extents),
        start=start,
        shift=shift,
        in_whole_vectors=d.layout.is_shifted_to_lines,
        columns=shape[axis],
        width=tile.width,
        window=window,
        aligned=aligned,
        streaming=access.streaming,
        in_order=access.in_order,
    )


def modulo(value: ir.Value, power: int) -> ir.Value:
    """`value` modulo a power of two."""
    return arith.AndIOp(value, constant(power - 1)).result


def _product(factors: Sequence[ir.Value]) -> ir.Value:
    result = factors[0]
    for factor in factors[1:]:
        result = arith.MulIOp(result, factor).result
    return result


def _sum(terms: Sequence[ir.Value]) -> ir.Value:
    if not terms:
        return constant(0)
    size = terms[0]
    for term in terms[1:]:
        size = add(size, term)
    return size

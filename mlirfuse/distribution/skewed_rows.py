"""Accesses to rows by aligned vectors, in layouts that shift each row or that are moved to.

Where the layout shifts rows (`skew`), what holds whole rows, one behind the other, is accessed a vector at a time; the
first and the last vector of a row reach into the rows before and behind it, which is harmless to a load and is left out
of a store. What all rows share, such as a weight a column, lies at another phase: a thread loads the aligned windows
that its fragment lies in, one more than the fragment has, and shifts them into place (`register_shifts.py`).

Rows of whole vectors may be shifted to lines of memory. All is aligned then, and a fragment is in its row or not.

Where rows are moved (`moved`), it is the other way round: what all rows share is accessed as it lies, and rows are
loaded in windows; `moved_rows.py` stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from mlirfuse.distribution.access import Access
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.fragments import Fragments, Key, elements
from mlirfuse.distribution.guard import Guard
from mlirfuse.distribution.program_order import keep_in_order
from mlirfuse.distribution.register_shifts import shifted
from mlirfuse.distribution.scalars import add, constant, less, minimum
from mlirfuse.distribution.threads import Threads
from mlirfuse.dtypes import from_mlir
from mlirfuse.errors import PassError
from mlirfuse.tiling.memory import DEFAULT_ALIGNMENT, WIDEST

INNER = 2
"""The number of a fragment of a row whose windows lie inside, whatever the row's phase."""

Finish = Callable[[], ir.Value]
"""Makes a fragment of what has been loaded."""


@dataclass(frozen=True)
class Rows:
    """A contiguous buffer whose rows run along its last axis, in a layout of rows that start anywhere.

    Attributes:
        flat: the buffer as one run of elements.
        total: elements of it.
        start: where the thread's row starts in the run.
        shift: by how much the layout shifts the row, 0 where it is moved.
        unit: elements to multiples of which the layout shifts rows; those of a fragment where it moves them.
        columns: elements of a row.
        width: elements of a fragment.
        window: elements of one access.
        aligned: whether fragments are aligned in memory.
        streaming: whether the data is touched once.
        in_order: whether loads stay where the program has them.
    """

    flat: ir.Value
    total: ir.Value
    start: ir.Value
    shift: ir.Value
    unit: int
    columns: int
    width: int
    window: int
    aligned: bool
    streaming: bool
    in_order: bool

    @property
    def even(self) -> bool:
        """Whether rows are whole fragments, each of which is inside of its row or outside, and aligned in memory."""
        return self.unit > self.width

    @property
    def window_type(self) -> ir.VectorType:
        return ir.VectorType.get([self.window], ir.MemRefType(self.flat.type).element_type)

    @property
    def bytes(self) -> int:
        """Size of one access."""
        return self.window * from_mlir(self.window_type.element_type).bytes


def rows_of(
    d: Distributor, access: Access, tile: Fragments, indices: Sequence[ir.Value], *, late: bool = False
) -> Rows:
    """The rows that a transfer accesses; the first whole ones of a kernel say how the layout shifts.

    Args:
        d: the kernel.
        access: the transfer.
        tile: its fragments.
        indices: of the thread's row, along each axis of the buffer but the last.
        late: whether what these indices say of the row is not to be known earlier than they are.

    Raises:
        PassError: they are not contiguous, or not aligned.
    """
    buffer_type, axis = access.type, access.vector_axis
    dtype, dynamic = from_mlir(buffer_type.element_type), ir.ShapedType.get_dynamic_size()
    window = min(tile.width, WIDEST // dtype.bytes)
    align = d.argument_attributes.get(access.buffer, {}).get("fuse.align")
    base = DEFAULT_ALIGNMENT if align is None else ir.IntegerAttr(align).value
    contiguous = axis == buffer_type.rank - 1 and not isinstance(buffer_type.layout, ir.StridedLayoutAttr)
    if axis is None or not contiguous or axis in access.clipped or base < window * dtype.bytes or dtype.kind == "bool":
        raise PassError(
            f"{buffer_type} has no rows, whole and aligned, that a layout could shift or move",
            where=ir.Location.current,
        )
    extents = [access.extent(n) for n in range(buffer_type.rank)]
    terms = [arith.MulIOp(index, _product(extents[n + 1 :])).result for n, index in enumerate(indices)]
    start = _sum(terms)
    place = (tuple(access.dims), tuple(access.offsets[:axis]))
    whole = all(n in access.dims for n in range(d.layout.rank) if d.layout.extents[n] > 1)
    unit = max(d.layout.skew, default=tile.width)
    if d.layout.is_skewed and d.skew is None and whole:
        d.skew, d.skewed_like = modulo(start, unit), place
    aligned = d.skewed_like == place if d.layout.is_skewed else not terms
    shift = d.shift() if d.layout.is_skewed else constant(0)
    if d.layout.is_skewed and aligned and late:
        shift = modulo(start, unit)
    shape = list(buffer_type.shape)
    flat = access.buffer
    if buffer_type.rank > 1:
        flat_type = ir.MemRefType.get([dynamic if dynamic in shape else prod(shape)], buffer_type.element_type)
        flat = memref.CollapseShapeOp(flat_type, access.buffer, [list(range(buffer_type.rank))]).result
    return Rows(
        flat=flat,
        total=_product(extents),
        start=start,
        shift=shift,
        unit=unit,
        columns=shape[axis],
        width=tile.width,
        window=window,
        aligned=aligned,
        streaming=access.streaming,
        in_order=access.in_order,
    )


def start_load(d: Distributor, rows: Rows, tile: Fragments, key: Key) -> Finish:
    """Emits the loads of a fragment; padding reads another fragment of the row."""
    dim = d.layout.vector_dim
    index = d.threads.index(dim, key[dim])
    if rows.even:
        column = arith.SubIOp(index, rows.shift).result
        if tile.padded(key, dim) or tile.starts_early(key, dim):
            # A column before the first is a large number.
            column = minimum(column, constant(rows.columns - rows.width))
        return _start_aligned(rows, add(rows.start, column), near_end=False)
    before = arith.SubIOp(rows.start, rows.shift).result
    last = add(rows.shift, constant(rows.columns - 1))
    if rows.aligned:
        if tile.padded(key, dim):
            index = minimum(index, arith.SubIOp(last, modulo(last, rows.width)).result)
        return _start_aligned(rows, add(before, index), near_end=tile.padded(key, dim))
    if tile.padded(key, dim):
        # One whose windows are whole: only what holds the end of the row goes the slow way.
        index = arith.SelectOp(less(last, index), constant(INNER * rows.width), index).result
    first = add(before, index)
    # What is added, a multiple of the window, keeps the number from being negative.
    phase = modulo(arith.SubIOp(add(rows.start, constant(rows.width)), rows.shift).result, rows.window)
    first = arith.SubIOp(first, phase).result
    loaded = []
    for begin in range(0, rows.width + rows.window, rows.window):
        start = add(first, constant(begin)) if begin else first
        if tile.starts_early(key, dim):
            start = arith.MaxSIOp(start, constant(0)).result
        near_end = tile.end(key, dim) + begin + rows.window - rows.width > rows.columns
        loaded.append(_load_guarded(rows, start) if near_end else _load(rows, start))
    return partial(shifted, loaded, phase, rows.width, gcd(rows.window, rows.columns))


def _start_aligned(rows: Rows, first: ir.Value, *, near_end: bool) -> Finish:
    starts = [add(first, constant(n)) if n else first for n in range(0, rows.width, rows.window)]
    loaded = [_load_guarded(rows, start) if near_end else _load(rows, start) for start in starts]
    if len(loaded) == 1:
        return lambda: loaded[0]
    fragment = ir.VectorType.get([rows.width], rows.window_type.element_type)
    return lambda: vector.FromElementsOp(fragment, [e for part in loaded for e in elements(part)]).result


def _load(rows: Rows, start: ir.Value) -> ir.Value:
    # Of windows that overlap each other, what one access fetches is another one's from the cache.
    once = rows.streaming and (rows.aligned or rows.even)
    loaded = vector.LoadOp(rows.window_type, rows.flat, [start], nontemporal=once or None, alignment=rows.bytes)
    return keep_in_order(loaded).result if rows.in_order else loaded.result


def _load_guarded(rows: Rows, start: ir.Value) -> ir.Value:
    """A window that may reach past the end of the buffer: its last element stands for what is not there."""
    inside = less(add(start, constant(rows.window - 1)), rows.total)
    branch = scf.IfOp(inside, [rows.window_type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_load(rows, start)])
    with ir.InsertionPoint(branch.else_block):
        loaded = [memref.LoadOp(rows.flat, [place]).result for place in _last_places(rows, start)]
        scf.YieldOp([vector.FromElementsOp(rows.window_type, loaded).result])
    return branch.results[0]


def _last_places(rows: Rows, start: ir.Value) -> list[ir.Value]:
    """Where the elements of a window are that reaches past the end."""
    total = ir.MemRefType(rows.flat.type).shape[0]
    if total == ir.ShapedType.get_dynamic_size():
        last = add(rows.total, constant(-1))
        return [minimum(add(start, constant(i)), last) for i in range(rows.window)]
    # No more than one window is cut off, and what lies behind it is no element of the row.
    left = total % rows.window
    return [constant(min(total - left + i, total - 1)) for i in range(rows.window)]


def store_row(
    d: Distributor,
    threads: Threads,
    rows: Rows,
    tile: Fragments,
    keys: Sequence[Key],
    active: Callable[[Key], ir.Value | None],
) -> None:
    """Stores a thread's fragments; `active` says whether its row is to be written, None where it always is."""
    dim = d.layout.vector_dim
    for key in keys:
        value, condition = tile.at(key), active(key)
        column = arith.SubIOp(threads.index(dim, key[dim]), rows.shift).result
        ragged = tile.padded(key, dim) or tile.starts_early(key, dim)
        if condition is None:
            store_fragment(rows, value, column, ragged)
            continue
        branch = scf.IfOp(condition)
        with ir.InsertionPoint(branch.then_block):
            store_fragment(rows, value, column, ragged)
            scf.YieldOp([])


def store_fragment(rows: Rows, value: ir.Value, column: ir.Value, ragged: bool) -> None:
    """Stores what of a fragment lies inside its row: vectors, where it is all and aligned."""
    first = add(rows.start, column)
    if rows.even:
        _store_even(rows, value, first, column, ragged)
        return
    if not rows.aligned:
        _store_elements(rows, value, first, column)
        return
    if not ragged:
        _store_whole(rows, value, first)
        return
    # A column before the first is a large number.
    whole = less(column, constant(rows.columns - rows.width + 1))
    branch = scf.IfOp(whole, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        _store_whole(rows, value, first)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _store_elements(rows, value, first, column)
        scf.YieldOp([])


def _store_even(rows: Rows, value: ir.Value, first: ir.Value, column: ir.Value, ragged: bool) -> None:
    with Guard(less(column, constant(rows.columns)) if ragged else None):
        _store_whole(rows, value, first)


def _store_whole(rows: Rows, value: ir.Value, first: ir.Value) -> None:
    scalars = elements(value) if rows.window < rows.width else []
    for begin in range(0, rows.width, rows.window):
        part = value
        if scalars:
            part = vector.FromElementsOp(rows.window_type, scalars[begin : begin + rows.window]).result
        place = add(first, constant(begin)) if begin else first
        vector.StoreOp(part, rows.flat, [place], nontemporal=rows.streaming or None, alignment=rows.bytes)


def _store_elements(rows: Rows, value: ir.Value, first: ir.Value, column: ir.Value) -> None:
    for i, element in enumerate(elements(value)):
        branch = scf.IfOp(less(add(column, constant(i)), constant(rows.columns)))
        with ir.InsertionPoint(branch.then_block):
            memref.StoreOp(element, rows.flat, [add(first, constant(i))])
            scf.YieldOp([])


def modulo(value: ir.Value, power: int) -> ir.Value:
    """The remainder of a division by a power of two."""
    return arith.AndIOp(value, constant(power - 1)).result


def _product(factors: Sequence[ir.Value]) -> ir.Value:
    result = factors[0]
    for factor in factors[1:]:
        result = arith.MulIOp(result, factor).result
    return result


def _sum(terms: Sequence[ir.Value]) -> ir.Value:
    if not terms:
        return constant(0)
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total

"""Accesses to rows by aligned vectors, in layouts that shift or realign rows.

Where the layout shifts rows (`shift_to`), buffers of contiguous rows are accessed by aligned vectors. The first and
last vector of a row extend into the neighbouring rows; loads ignore the surplus elements, and stores leave them out.
Operands that all rows share, such as a weight for each column, have another alignment: a thread loads the aligned
windows that cover its fragment, one more than the fragment has, and shifts them into place (`register_shifts.py`).

Rows of whole vectors may be shifted to cache lines; then every fragment is aligned, and entirely inside its row or
outside.

Where the layout realigns rows (`realigned`), operands that all rows share are accessed directly, and rows are loaded in
windows; `realigned_rows.py` stores rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements
from mlirfuse.distribution.threads.guard import Guard
from mlirfuse.distribution.threads.ordered_accesses import keep_in_order
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.distribution.unaligned.register_shifts import shifted
from mlirfuse.distribution.unaligned.rows import Rows, modulo

INNER = 2
"""Number of a fragment of a row whose windows are inside the buffer for every alignment of the row."""

Complete = Callable[[], ir.Value]
"""Assembles a fragment from the loaded windows."""


def start_load(d: Distributor, rows: Rows, tile: Fragments, key: Key) -> Complete:
    """Emits the loads of a fragment; for padding, another fragment of the row is loaded."""
    dim = d.layout.vector_dim
    index = d.threads.index(dim, key[dim])
    if rows.in_whole_vectors:
        column = arith.SubIOp(index, rows.shift).result
        if tile.padded(key, dim) or tile.may_precede_row(key, dim):
            # Compared as unsigned, a column before the first is large.
            column = minimum(column, constant(rows.columns - rows.width))
        return _start_aligned(rows, add(rows.start, column), near_end=False)
    before = arith.SubIOp(rows.start, rows.shift).result
    last = add(rows.shift, constant(rows.columns - 1))
    if rows.aligned:
        if tile.padded(key, dim):
            index = minimum(index, arith.SubIOp(last, modulo(last, rows.width)).result)
        return _start_aligned(rows, add(before, index), near_end=tile.padded(key, dim))
    if tile.padded(key, dim):
        # The windows of the replacement are inside the buffer: only the fragment with the row's end is guarded.
        index = arith.SelectOp(less(last, index), constant(INNER * rows.width), index).result
    first = add(before, index)
    # Adding a multiple of the window keeps the number from being negative.
    phase = modulo(arith.SubIOp(add(rows.start, constant(rows.width)), rows.shift).result, rows.window)
    first = arith.SubIOp(first, phase).result
    loaded = []
    for begin in range(0, rows.width + rows.window, rows.window):
        start = add(first, constant(begin)) if begin else first
        if tile.may_precede_row(key, dim):
            start = arith.MaxSIOp(start, constant(0)).result
        near_end = tile.end(key, dim) + begin + rows.window - rows.width > rows.columns
        loaded.append(_load_guarded(rows, start) if near_end else _load(rows, start))
    return partial(shifted, loaded, phase, rows.width, gcd(rows.window, rows.columns))


def _start_aligned(rows: Rows, first: ir.Value, *, near_end: bool) -> Complete:
    starts = [add(first, constant(n)) if n else first for n in range(0, rows.width, rows.window)]
    loaded = [_load_guarded(rows, start) if near_end else _load(rows, start) for start in starts]
    if len(loaded) == 1:
        return lambda: loaded[0]
    fragment = ir.VectorType.get([rows.width], rows.window_type.element_type)
    return lambda: vector.FromElementsOp(fragment, [e for piece in loaded for e in elements(piece)]).result


def _load(rows: Rows, start: ir.Value) -> ir.Value:
    # Overlapping windows share sectors, so only accesses that do not overlap bypass the cache.
    once = rows.streaming and (rows.aligned or rows.in_whole_vectors)
    loaded = vector.LoadOp(rows.window_type, rows.flat, [start], nontemporal=once or None, alignment=rows.bytes)
    return keep_in_order(loaded).result if rows.in_order else loaded.result


def _load_guarded(rows: Rows, start: ir.Value) -> ir.Value:
    """Loads a window that may extend past the end of the buffer; elements beyond the end are copies of the last one."""
    inside = less(add(start, constant(rows.window - 1)), rows.size)
    branch = scf.IfOp(inside, [rows.window_type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_load(rows, start)])
    with ir.InsertionPoint(branch.else_block):
        loaded = [memref.LoadOp(rows.flat, [position]).result for position in _last_indices(rows, start)]
        scf.YieldOp([vector.FromElementsOp(rows.window_type, loaded).result])
    return branch.results[0]


def _last_indices(rows: Rows, start: ir.Value) -> list[ir.Value]:
    """Indices of the elements of a window that extends past the end of the buffer."""
    size = ir.MemRefType(rows.flat.type).shape[0]
    if size == ir.ShapedType.get_dynamic_size():
        last = add(rows.size, constant(-1))
        return [minimum(add(start, constant(i)), last) for i in range(rows.window)]
    # At most one window is cut off, and the elements beyond it are not in the row.
    left = size % rows.window
    return [constant(min(size - left + i, size - 1)) for i in range(rows.window)]


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
        ragged = tile.padded(key, dim) or tile.may_precede_row(key, dim)
        with Guard(condition):
            store_fragment(rows, value, column, ragged)


def store_fragment(rows: Rows, value: ir.Value, column: ir.Value, ragged: bool) -> None:
    """Stores the elements of a fragment that are inside the row, as vectors where all are inside and aligned."""
    first = add(rows.start, column)
    if rows.in_whole_vectors:
        with Guard(less(column, constant(rows.columns)) if ragged else None):
            _store_whole(rows, value, first)
        return
    if not rows.aligned:
        _store_elements(rows, value, first, column)
        return
    if not ragged:
        _store_whole(rows, value, first)
        return
    # Compared as unsigned, a column before the first is large.
    whole = less(column, constant(rows.columns - rows.width + 1))
    branch = scf.IfOp(whole, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        _store_whole(rows, value, first)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _store_elements(rows, value, first, column)
        scf.YieldOp([])


def _store_whole(rows: Rows, value: ir.Value, first: ir.Value) -> None:
    scalars = elements(value) if rows.window < rows.width else []
    for begin in range(0, rows.width, rows.window):
        piece = value
        if scalars:
            piece = vector.FromElementsOp(rows.window_type, scalars[begin : begin + rows.window]).result
        position = add(first, constant(begin)) if begin else first
        vector.StoreOp(piece, rows.flat, [position], nontemporal=rows.streaming or None, alignment=rows.bytes)


def _store_elements(rows: Rows, value: ir.Value, first: ir.Value, column: ir.Value) -> None:
    for i, element in enumerate(elements(value)):
        with Guard(less(add(column, constant(i)), constant(rows.columns))):
            memref.StoreOp(element, rows.flat, [add(first, constant(i))])

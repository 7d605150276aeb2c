"""Stores of rows of any alignment, from layouts that do not shift rows.

A thread's vectors are not aligned in memory. So threads write their fragments to shared memory, load from it the
windows that cover an aligned vector of memory, shift these into place (`register_shifts.py`), and store the vector. The
other operands of the kernel are accessed as if rows were aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, Key
from mlirfuse.distribution.threads.guard import Guard
from mlirfuse.distribution.threads.scalars import add, constant, minimum, multiply
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.distribution.unaligned.register_shifts import shifted
from mlirfuse.distribution.unaligned.rows import Rows, modulo
from mlirfuse.distribution.unaligned.unaligned_rows import store_fragment


def realign_row(
    d: Distributor,
    threads: Threads,
    rows: Rows,
    tile: Fragments,
    keys: Sequence[Key],
    active: Callable[[Key], ir.Value | None],
) -> None:
    """Stores a thread's fragments; `active` says whether its row is to be written, None where it always is."""
    dim, width, layout = d.layout.vector_dim, rows.width, d.layout
    outer = [n for n in range(layout.rank) if n != dim]
    held = width * layout.lanes[dim] * layout.warps[dim] * tile.repeats(dim)
    staged = d.scratch(held * prod(layout.lanes[n] * layout.warps[n] for n in outer), tile.element_type)
    row = threads.linear(threads.own, layout.extents, outer)
    base = constant(0) if row is None else multiply(row, held)
    own = {key: add(base, threads.index(dim, key[dim])) for key in keys}
    for key in keys:
        _store(rows, tile.at(key), staged, own[key])
    d.barrier()
    shift = modulo(rows.start, width)
    phase = modulo(arith.SubIOp(constant(width), shift).result, rows.window)
    back = add(shift, phase)
    memory = replace(rows, shift=shift, aligned=True)
    for key in keys:
        ragged = tile.padded(key, dim) or key[dim] == 0
        column = arith.SubIOp(threads.index(dim, key[dim]), shift).result
        first, condition = arith.SubIOp(own[key], back).result, active(key)
        windows = []
        for begin in range(0, width + rows.window, rows.window):
            position = add(first, constant(begin)) if begin else first
            # Elements before the row or after all fragments are not stored, so any window will do.
            if begin < width and key[dim] == 0:
                position = arith.MaxSIOp(position, base).result
            if begin == width and tile.end(key, dim) == held:
                position = minimum(position, add(base, constant(held - rows.window)))
            windows.append(vector.LoadOp(rows.window_type, staged, [position], alignment=rows.bytes).result)
        value = shifted(windows, phase, width, gcd(rows.window, rows.columns))
        with Guard(condition):
            store_fragment(memory, value, column, ragged)


def _store(rows: Rows, value: ir.Value, staged: ir.Value, position: ir.Value) -> None:
    """Stores a fragment to shared memory, in accesses as wide as a window."""
    for begin in range(0, rows.width, rows.window):
        piece = value
        if rows.window < rows.width:
            piece = vector.ExtractStridedSliceOp(rows.window_type, value, [begin], [rows.window], [1]).result
        vector.StoreOp(piece, staged, [add(position, constant(begin)) if begin else position], alignment=rows.bytes)

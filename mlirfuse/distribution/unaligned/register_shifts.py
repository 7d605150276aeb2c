"""Shifts fragments in registers by a number of elements known only at run time.

Each binary digit of the shift that is a register or more takes a selection between two registers; for elements of less
than 32 bits, one shift of register pairs follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.distribution.threads.fragments import elements, fragment_type
from mlirfuse.distribution.threads.scalars import constant, equals_zero, multiply
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.support.dtypes import from_mlir


def shifted(windows: Sequence[ir.Value], by: ir.Value, width: int, step: int) -> ir.Value:
    """Returns `width` elements of consecutive vectors, from element `by` on.

    Args:
        windows: the vectors, each with the same power of two of elements.
        by: an index below the elements of one vector.
        width: elements of the result; the vectors together hold one vector more.
        step: a number that divides `by`.
    """
    window = ir.VectorType(windows[0].type)
    size, nbytes = window.shape[0], from_mlir(window.element_type).bytes
    packed = max(1, REGISTER_BYTES // nbytes)
    digits = [1 << n for n in reversed(range(size.bit_length() - 1)) if 1 << n >= max(step, packed)]
    distances = [digit * nbytes // REGISTER_BYTES for digit in digits]
    count, rest = width * nbytes // REGISTER_BYTES, int(step < packed)
    words = [word for window in windows for word in _words(window)]
    for n, (digit, distance) in enumerate(zip(digits, distances, strict=True)):
        is_unshifted = equals_zero(arith.AndIOp(by, constant(digit)).result)
        needed = count + rest + sum(distances[n + 1 :])
        words = [arith.SelectOp(is_unshifted, words[i], words[i + distance]).result for i in range(needed)]
    if rest:
        i64 = ir.IntegerType.get_signless(64)
        within = arith.AndIOp(by, constant(packed - 1)).result
        bits = arith.IndexCastOp(i64, multiply(within, 8 * nbytes)).result
        words = [_low(words[i], words[i + 1], bits) for i in range(count)]
    joined = vector.FromElementsOp(ir.VectorType.get([count], words[0].type), words[:count]).result
    wanted = fragment_type(width, window.element_type)
    return joined if joined.type == wanted else vector.BitCastOp(wanted, joined).result


def _low(low: ir.Value, high: ir.Value, bits: ir.Value) -> ir.Value:
    """The lower register of a pair after a funnel shift to the right."""
    both = vector.FromElementsOp(ir.VectorType.get([2], low.type), [low, high]).result
    pair = elements(vector.BitCastOp(ir.VectorType.get([1], bits.type), both).result)[0]
    return arith.TruncIOp(low.type, arith.ShRUIOp(pair, bits).result).result


def _words(window: ir.Value) -> list[ir.Value]:
    """A vector as 32-bit registers."""
    window_type = ir.VectorType(window.type)
    count = window_type.shape[0] * from_mlir(window_type.element_type).bytes // REGISTER_BYTES
    packed = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    return elements(window if window.type == packed else vector.BitCastOp(packed, window).result)

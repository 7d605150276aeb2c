"""Exchanging values between lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from mlir import ir
from mlir.dialects import arith, gpu, vector

from mlirfuse.distribution.threads.fragments import elements
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.support.dtypes import from_mlir


def butterfly(value: ir.Value, offset: int) -> ir.Value:
    """The value of the lane whose number differs by `xor offset`; a fragment element by element."""
    if isinstance(value.type, ir.VectorType):
        shuffled = [_shuffle(element, offset) for element in elements(value)]
        return vector.FromElementsOp(value.type, shuffled).result
    return _shuffle(value, offset)


def lane_offsets(layout: BlockedLayout, dims: Iterable[int]) -> list[int]:
    """The xor distances that join all lanes along `dims`, from the lowest bit of their common number up."""
    offsets = []
    for dim in sorted(dims, reverse=True):
        step = prod(layout.lanes[dim + 1 :])
        offsets += [step << bit for bit in range(layout.lanes[dim].bit_length() - 1)]
    return offsets


def _shuffle(value: ir.Value, offset: int) -> ir.Value:
    """One scalar; the hardware moves 32 bits, so narrower types are widened and 64-bit ones go in halves."""
    i32 = ir.IntegerType.get_signless(32)
    bits = 1 if str(value.type) == "i1" else from_mlir(value.type).bits
    if bits == 32:
        return _shuffle32(value, offset)
    integer = ir.IntegerType.get_signless(bits)
    if bits < 32:
        raw = value if value.type == integer else arith.BitcastOp(integer, value).result
        moved = _shuffle32(arith.ExtUIOp(i32, raw).result, offset)
        narrow = arith.TruncIOp(integer, moved).result
        return narrow if value.type == integer else arith.BitcastOp(value.type, narrow).result
    pair = vector.BitCastOp(
        ir.VectorType.get([2], i32), vector.BroadcastOp(ir.VectorType.get([1], value.type), value).result
    )
    halves = [_shuffle32(half, offset) for half in elements(pair.result)]
    joined = vector.FromElementsOp(ir.VectorType.get([2], i32), halves).result
    whole = vector.BitCastOp(ir.VectorType.get([1], value.type), joined).result
    return elements(whole)[0]


def _shuffle32(value: ir.Value, offset: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    distance = arith.ConstantOp(i32, offset).result
    width = arith.ConstantOp(i32, WARP).result
    return gpu.ShuffleOp(value, distance, width, gpu.ShuffleMode.XOR).shuffleResult

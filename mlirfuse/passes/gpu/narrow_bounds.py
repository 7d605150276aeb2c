"""`fuse-narrow-bounds`: compares what a thread adds to its tile's position, in 32 bits, not its position in 64."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.attributes import EQUAL_EXTENTS
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, integer_of, ops_named, split_constant

MOST = (1 << 31) - 1
"""The largest number of 32 bits that is not negative: offsets of threads are below it."""

FEWEST = 4
"""Bounds of one position from which on it pays to compute what they share: about as many instructions as each saves
three times."""

_NUMBERS = {"gpu.thread_id": 1023, "gpu.cluster_block_id": 15}
"""The largest number of a thread in its block, and of a block in its cluster."""


@dataclass(frozen=True)
class FuseNarrowBounds(Pass):
    """Clamps and checks the offset of a thread in its tile, in 32 bits, where code clamps and checks whole indices.

    Requires one thread's code (`gpu.func`). An index is the tile's position, which all threads of a block share, and an
    offset, which is known to be small: numbers of threads times constants. Let p be the smaller of the position and the
    bound. Then `min(position + offset, bound)` is `p + min(offset, bound - p)`, and `position + offset < bound` is
    `offset < bound - p`. What threads share is computed once, and each access is left with an instruction of 32 bits in
    place of four or five: an index of 64 bits is added, compared and selected in halves. Indices without a part that is
    known to be small are left alone, as are those of which a part may be negative, such as windows that reach into
    padding, comparisons other than `ult`, and bounds of which all is known.

    ```mlir
    %row = arith.addi %position, %offset : index
    %clamped = arith.minui %row, %last : index
    %inside = arith.cmpi ult, %row, %rows : index
    ```
    becomes
    ```mlir
    %p = arith.minui %position, %last : index
    %left = arith.subi %last, %p : index
    %few = arith.minui %left, %c2147483647 : index
    %limit = arith.index_castui %few : index to i32
    %narrow = arith.index_castui %offset : index to i32
    %least = arith.minui %narrow, %limit : i32
    %0 = arith.index_castui %least : i32 to index
    %clamped = arith.addi %p, %0 : index
    %inside = arith.cmpi ult, %narrow, %limit_of_rows : i32
    ```
    """

    name: ClassVar[str] = "fuse-narrow-bounds"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for func in ops_named(module, "gpu.func"):
            _read_equal_extents_once(func)
            found = [op for op in ops_named(func, "arith.minui", "arith.cmpi") if _is_bound(op)]
            offsets = _Offsets()
            groups = [group for group in _groups(found, offsets) if len(group.ops) >= FEWEST]
            for group in groups:
                _narrow(group, offsets)
            # An index may be clamped that another clamp is part of, so all of them stay until the last is rewritten.
            for op in [op for group in reversed(groups) for op, _ in reversed(group.ops)]:
                if not list(op.results[0].uses):
                    erase(op)
            done = sum(len(group.ops) for group in groups)
            if done:
                remarks.applied(self, f"{done} of {len(found)} bounds are of offsets in 32 bits", func)
            else:
                remarks.declined(self, f"no {FEWEST} indices have small offsets from one position", func)


def _read_equal_extents_once(func: ir.Operation) -> None:
    """Replaces the extents that `fuse.equal_extents` says are equal by one of them, read at the top of the kernel."""
    if EQUAL_EXTENTS not in func.attributes:
        return
    block = func.regions[0].blocks[0]
    flat = [list(ir.DenseI64ArrayAttr(group)) for group in ir.ArrayAttr(func.attributes[EQUAL_EXTENTS])]
    groups = {pair: n for n, group in enumerate(flat) for pair in zip(group[::2], group[1::2], strict=True)}
    known: dict[int, ir.Value] = {}
    for op in ops_named(func, "memref.dim"):
        source, axis = op.operands[0], integer_of(op.operands[1])
        if not isinstance(source.owner, ir.Block) or source.owner != block or axis is None:
            continue
        group = groups.get((ir.BlockArgument(source).arg_number, axis))
        if group is None:
            continue
        if group not in known:
            with ir.InsertionPoint.at_block_begin(block), op.location:
                number = arith.ConstantOp(ir.IndexType.get(), flat[group][1]).result
                known[group] = memref.DimOp(block.arguments[flat[group][0]], number).result
        op.results[0].replace_all_uses_with(known[group])
        erase(op)


def _is_bound(op: ir.Operation) -> bool:
    """Whether an op clamps an index, or checks it."""
    if not isinstance(op.operands[0].type, ir.IndexType):
        return False
    return op.name == "arith.minui" or ir.IntegerAttr(op.attributes["predicate"]).value == arith.CmpIPredicate.ult


class _Offsets:
    """What is known of indices: the most that each may be, where that is small."""

    def __init__(self) -> None:
        self._most: dict[ir.Value, int | None] = {}

    def most(self, value: ir.Value) -> int | None:
        """The largest value of an index below `MOST`; None where it is not known, or larger."""
        if value not in self._most:
            found = self._bound(value)
            self._most[value] = found if found is not None and found < MOST else None
        return self._most[value]

    def varies(self, value: ir.Value) -> bool:
        """Whether an index that is known to be small differs between threads, as far as is seen."""
        op = defining_op(value)
        if op is None or op.name == "arith.constant":
            return False
        return op.name == "gpu.thread_id" or any(self.varies(operand) for operand in op.operands)

    def _bound(self, value: ir.Value) -> int | None:
        op = defining_op(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            return integer_of(value)
        if op.name in _NUMBERS:
            return _NUMBERS[op.name]
        known = [self.most(operand) for operand in op.operands] if op.name in _RULES else []
        return _RULES[op.name](known) if known else None


def _sum(known: Sequence[int | None]) -> int | None:
    a, b = known
    return None if a is None or b is None or a < 0 or b < 0 else a + b


def _product(known: Sequence[int | None]) -> int | None:
    a, b = known
    return None if a is None or b is None or a < 0 or b < 0 else a * b


def _least(known: Sequence[int | None]) -> int | None:
    return min((n for n in known if n is not None and n >= 0), default=None)


def _first(known: Sequence[int | None]) -> int | None:
    return known[0] if known[0] is not None and known[0] >= 0 else None


def _remainder(known: Sequence[int | None]) -> int | None:
    dividend, divisor = known
    if divisor is not None and divisor > 0:
        return divisor - 1 if dividend is None else min(dividend, divisor - 1)
    return _first(known)


_RULES: dict[str, Callable[[Sequence[int | None]], int | None]] = {
    "arith.addi": _sum,
    "arith.muli": _product,
    "arith.minui": _least,
    "arith.divui": _first,
    "arith.remui": _remainder,
}
"""The most that the result of an op may be, by the most that its operands may be."""


@dataclass
class _Group:
    """Bounds of one position, the first of which stands before all others.

    Attributes:
        position: the terms of the position, which are not known to be small; none where an index is an offset alone.
        bound: of the first.
        ops: clamps and checks, with the terms of each one's offset.
    """

    position: Sequence[ir.Value]
    bound: ir.Value
    ops: list[tuple[ir.Operation, Sequence[ir.Value]]]


def _groups(ops: Sequence[ir.Operation], offsets: _Offsets) -> list[_Group]:
    """Clamps and checks of offsets that differ between threads, by what they can share."""
    found = list[_Group]()
    known: dict[tuple[int | ir.Value, ...], list[_Group]] = {}
    for op in ops:
        index, bound = op.operands
        terms = _terms(index)
        small = [term for term in terms if (most := offsets.most(term)) is not None and most >= 0]
        if sum(offsets.most(term) or 0 for term in small) >= MOST or not any(offsets.varies(term) for term in small):
            continue
        position = [term for term in terms if term not in small]
        if not all(map(_is_natural, position)):
            continue
        if not position and integer_of(bound) is not None:
            continue  # LLVM sees which of these never hold
        rest, constant = split_constant(bound)
        alike = known.setdefault((constant, rest, *position), [])
        group = next((each for each in alike if _dominates(each.ops[0][0].block, op.block)), None)
        if group is None:
            group = _Group(position, bound, [])
            alike.append(group)
            found.append(group)
        group.ops.append((op, small))
    return found


def _is_natural(value: ir.Value) -> bool:
    """Whether an index is known to be no negative number, of which an unsigned one is larger than any bound."""
    op = defining_op(value)
    if op is None:
        return True  # the number of an iteration, or an argument
    if op.name == "arith.constant":
        return (integer_of(value) or 0) >= 0
    if op.name == "affine.apply":
        negative = re.search(r"- |-\d", str(ir.AffineMapAttr(op.attributes["map"]).value))
        return negative is None and all(map(_is_natural, op.operands))
    if op.name in _NATURAL:
        return True
    return op.name in _KEEPS_NATURAL and all(
        _is_natural(operand) for operand in op.operands if isinstance(operand.type, ir.IndexType)
    )


_NATURAL = frozenset(
    {
        *("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.cluster_id", "gpu.cluster_block_id"),
        *("memref.dim", "arith.index_castui"),
    }
)
_KEEPS_NATURAL = frozenset({*_RULES, "arith.maxui", "arith.select", "arith.divsi", "arith.remsi", "arith.maxsi"})


def _narrow(group: _Group, offsets: _Offsets) -> None:
    """Rewrites the clamps and checks of a group."""
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    first, _ = group.ops[0]
    position, left = None, group.bound
    with ir.InsertionPoint(first), first.location:
        if group.position:
            position = arith.MinUIOp(reduce(_added, group.position), group.bound).result
            left = arith.SubIOp(group.bound, position).result
        number = integer_of(left)
        if number is None or not 0 <= number <= MOST:
            left = arith.MinUIOp(left, arith.ConstantOp(index, MOST).result).result
        limit = arith.IndexCastUIOp(i32, left).result
    for op, small in group.ops:
        with ir.InsertionPoint(op), op.location:
            offset = reduce(_added, [_in_32_bits(term, offsets) for term in small])
            if op.name == "arith.cmpi":
                result = arith.CmpIOp(arith.CmpIPredicate.ult, offset, limit).result
            else:
                result = arith.IndexCastUIOp(index, arith.MinUIOp(offset, limit).result).result
                result = result if position is None else arith.AddIOp(position, result).result
        op.results[0].replace_all_uses_with(result)


def _dominates(outer: ir.Block, inner: ir.Block) -> bool:
    """Whether a block is another one, or around it: what stands in it was emitted before."""
    while inner != outer:
        owner = inner.owner.operation
        if owner.name == "gpu.func":
            return False
        inner = owner.block
    return True


def _terms(index: ir.Value) -> list[ir.Value]:
    """The numbers that an index is the sum of."""
    op = defining_op(index)
    if op is None or op.name != "arith.addi":
        return [index]
    return [term for operand in op.operands for term in _terms(operand)]


def _in_32_bits(index: ir.Value, offsets: _Offsets) -> ir.Value:
    """Emits a small index anew in 32 bits: LLVM would widen what compares indices that were cast.

    A remainder is small whatever is divided: its operands stay in 64 bits where they are not known to be small.
    """
    i32, op = ir.IntegerType.get_signless(32), defining_op(index)
    assert op is not None
    if (number := integer_of(index)) is not None:
        return arith.ConstantOp(i32, number).result
    are_small = all((most := offsets.most(operand)) is not None and most >= 0 for operand in op.operands)
    if op.name not in _RULES or op.name == "arith.minui" or not are_small:
        return arith.IndexCastUIOp(i32, index).result
    operands = [_in_32_bits(operand, offsets) for operand in op.operands]
    return ir.Operation.create(op.name, results=[i32], operands=operands).result


def _added(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.AddIOp(a, b).result

"""Pointers to a block's tile: what all threads of a block add to an address is added first, and once.

An index that `fuse-narrow-bounds` clamped is a position plus an offset of 32 bits. Upstream multiplies the
sum by a stride, in 64 bits for each access. A pointer to the tile's position leaves each access one product of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.support.rewriting import defining_op, erase, ops_named

_ARITHMETIC = ("add", "sub", "mul", "shl", "lshr", "udiv", "urem", "sdiv", "srem", "select", "icmp", "intr.umin")
_INDEX_OPS = frozenset(f"llvm.{name}" for name in (*_ARITHMETIC, "zext", "sext", "trunc", "mlir.constant"))
"""Ops whose result is the same for all threads where their operands are."""

_SHARED = frozenset({"nvvm.read.ptx.sreg.ctaid.x", "nvvm.read.ptx.sreg.nctaid.x", "nvvm.read.ptx.sreg.clusterid.x"})
"""Numbers that all threads of a block read alike."""


@dataclass(frozen=True)
class _Term:
    """A number that an index is the sum of: a value times factors that all threads share."""

    value: ir.Value
    factors: tuple[ir.Value, ...]

    def product(self) -> ir.Value:
        """Emits it."""
        return reduce(_times, self.factors, self.value)


def point_to_tiles(kernel: ir.Operation) -> int:
    """Splits the pointers of an `llvm.func` whose index has a clamped offset; returns how many.

    Others are left alone: what a thread adds to them is a constant mostly, which is an immediate of the access.
    """
    shared: dict[ir.Value, bool] = {}
    found = 0
    for op in ops_named(kernel, "llvm.getelementptr"):
        base, *indices = op.operands
        if len(indices) != 1:
            continue
        terms = _terms(indices[0], (), shared)
        common = [term for term in terms if _is_shared(term.value, shared)]
        own = [term for term in terms if term not in common]
        if not any(_is_clamped(term.value) for term in own) or all(_is_constant(term.value) for term in common):
            continue
        with ir.InsertionPoint(op), op.location:
            tile = _pointer(op, base, common)
            op.results[0].replace_all_uses_with(_pointer(op, tile, own))
        erase(op)
        found += 1
    for op in ops_named(kernel, "llvm.zext"):
        if _is_clamped(op.results[0]):
            _keep_narrow(op)
    return found


def _keep_narrow(extension: ir.Operation) -> None:
    """Clamps by an instruction that LLVM does not know: it would compare in 64 bits, which takes three."""
    least = defining_op(extension.operands[0])
    assert least is not None
    i32 = least.results[0].type
    with ir.InsertionPoint(least), least.location:
        extension.operands[0] = llvm.inline_asm(i32, list(least.operands), "min.u32 $0, $1, $2;", "=r,r,r")
    if not list(least.results[0].uses):
        erase(least)


def _pointer(op: ir.Operation, base: ir.Value, terms: Sequence[_Term]) -> ir.Value:
    """A pointer like that of `op`, from another base and by other terms; what it wraps to is not known."""
    index = reduce(_plus, [term.product() for term in terms])
    known, element = op.attributes["rawConstantIndices"], op.attributes["elem_type"]
    return llvm.GEPOp(op.results[0].type, base, [index], known, element, llvm.GEPNoWrapFlags.none).result


def _terms(value: ir.Value, factors: tuple[ir.Value, ...], shared: dict[ir.Value, bool]) -> list[_Term]:
    """The terms of an index times factors: sums are taken apart, also those that a shared factor multiplies."""
    op = defining_op(value)
    if op is not None and op.name == "llvm.add":
        return [term for operand in op.operands for term in _terms(operand, factors, shared)]
    if op is not None and op.name == "llvm.mul":
        left, right = op.operands
        if _is_shared(left, shared):
            left, right = right, left
        if _is_shared(right, shared) and not _is_shared(left, shared):
            return _terms(left, (*factors, right), shared)
    return [_Term(value, factors)]


def _is_shared(value: ir.Value, shared: dict[ir.Value, bool]) -> bool:
    """Whether a number is the same for all threads of a block, as far as is seen; wrong answers cost time only."""
    if value not in shared:
        op = defining_op(value)
        shared[value] = (
            op is None
            or op.name in _SHARED
            or (op.name in _INDEX_OPS and all(_is_shared(operand, shared) for operand in op.operands))
        )
    return shared[value]


def _is_clamped(value: ir.Value) -> bool:
    """Whether a number is a minimum of 32 bits, which no thread shares."""
    op = defining_op(value)
    narrow = defining_op(op.operands[0]) if op is not None and op.name == "llvm.zext" else None
    return narrow is not None and narrow.name == "llvm.intr.umin"


def _is_constant(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "llvm.mlir.constant"


def _plus(a: ir.Value, b: ir.Value) -> ir.Value:
    return llvm.AddOp(a, b, llvm.IntegerOverflowFlags.none).result


def _times(a: ir.Value, b: ir.Value) -> ir.Value:
    return llvm.MulOp(a, b, llvm.IntegerOverflowFlags.none).result

"""Index arithmetic that folds constants, which keeps the IR of the gpu stage readable."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.support.rewriting import integer_of


def constant(value: int) -> ir.Value:
    """An index constant, by `ConstantOp`, which is faster than the generic builder."""
    index = ir.IndexType.get()
    value_of = {"value": ir.IntegerAttr.get(index, value)}
    return ir.Operation.create("arith.constant", results=[index], attributes=value_of).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two indices; one of the indices where the other is 0.

    Folding here is linear; upstream's canonicalizer needs quadratic time for long chains of sums in a loop.
    """
    if integer_of(a) == 0:
        return b
    return a if integer_of(b) == 0 else arith.AddIOp(a, b).result


def multiply(a: ir.Value, factor: int) -> ir.Value:
    """`a * factor`; `a` itself where the factor is 1."""
    return a if factor == 1 else arith.MulIOp(a, constant(factor)).result


def divide(a: ir.Value, divisor: int) -> ir.Value:
    """`a // divisor` of an index that is not negative."""
    return a if divisor == 1 else arith.DivUIOp(a, constant(divisor)).result


def remainder(a: ir.Value, divisor: int) -> ir.Value:
    """`a % divisor` of an index that is not negative."""
    return constant(0) if divisor == 1 else arith.RemUIOp(a, constant(divisor)).result


def opaque_index(a: ir.Value, after: ir.Value) -> ir.Value:
    """An index below 2^31 that is not computed before `after` is known."""
    narrow = arith.IndexCastOp(ir.IntegerType.get_signless(32), a).result
    return arith.IndexCastOp(a.type, optimization_barrier(narrow, after)).result


def equals_zero(a: ir.Value) -> ir.Value:
    """Whether an index is 0, as an `i1`."""
    return arith.CmpIOp(arith.CmpIPredicate.eq, a, constant(0)).result


def less(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether `a < b`, both taken as unsigned, as an `i1`."""
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result


def minimum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of two indices, both taken as unsigned."""
    return arith.MinUIOp(a, b).result

"""Index arithmetic that folds what it can see, so that the gpu stage stays readable."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.support.rewriting import integer_of


def constant(value: int) -> ir.Value:
    """An index constant; there are so many that the generic builder's half of the time of `ConstantOp` tells."""
    index = ir.IndexType.get()
    value_of = {"value": ir.IntegerAttr.get(index, value)}
    return ir.Operation.create("arith.constant", results=[index], attributes=value_of).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two indices; one of them where the other is 0.

    What upstream's canonicalizer folds in a loop takes it a time that grows with the square: for a tile of 128x128 by
    SIMT products, whose slots begin at 0, it was 0.5 s, and is 0.02.
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
    """An index below 2^31 that is not known before `after` is."""
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

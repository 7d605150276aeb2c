"""Indices along a row of an array: what is known of their alignment, and numbers that are added to them."""

from __future__ import annotations

from math import gcd

from mlir import ir

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import integer_of, split_constant
from mlirfuse.tiling.memory import alignment, strides


def split_index(value: ir.Value) -> tuple[ir.Value | None, int]:
    """An index as what it is without a number that is added to it last, None for 0, and the number."""
    if (number := integer_of(value)) is not None:
        return None, number
    return split_constant(value)


def aligned_elements(array: ir.Value, rest: ir.Value | None, known: dict[str, ir.Attribute], step: int = 1) -> int:
    """Elements that rows of an array, and an index along them, are multiples of, at most those of the widest access; 1
    where rows are no runs of memory.

    Args:
        array: a memref.
        rest: the index without a number that is added to it, before it is multiplied by the step; None for 0.
        known: the attributes of the kernel's argument that the array is.
        step: what the index is multiplied by.
    """
    type_ = ir.MemRefType(array.type)
    last = type_.rank - 1
    if strides(type_)[last] != 1:
        return 1
    declared = ir.IntegerAttr(known[ALIGN]).value if ALIGN in known else None
    most = alignment(type_, last, declared) // from_mlir(type_.element_type).bytes
    divisor = 0 if rest is None else divisor_of(rest) * step  # 0 is a multiple of everything
    return gcd(most, divisor & -divisor)

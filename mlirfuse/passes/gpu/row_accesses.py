"""Accesses along a row of an array: what is known of their alignment, and numbers that are added to their indices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import gcd

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import integer_of, nested, split_constant
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


@dataclass
class RowStores:
    """Stores to one row of an array, in program order, each of other elements.

    Attributes:
        array: an argument of the kernel.
        known: its attributes.
        at: the indices but for the last one.
        rest: the last index without a number that is added to it; None for 0.
        stores: by the number that is added to the last index, in program order.
    """

    array: ir.Value
    known: dict[str, ir.Attribute]
    at: tuple[ir.Value, ...]
    rest: ir.Value | None
    stores: dict[int, ir.Operation] = field(default_factory=dict)

    @property
    def aligned(self) -> int:
        """Elements that the last index, without its number, is known to be a multiple of, a power of two."""
        return aligned_elements(self.array, self.rest, self.known)


def rows_of_stores(kernel: ir.Operation, names: Collection[str]) -> list[RowStores]:
    """The stores of some names to a kernel's arguments, by row, and by what may read or write an array in between."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    known = dict(zip(arguments, argument_attributes(kernel), strict=False))
    found: list[RowStores] = []
    open_: dict[tuple[object, ...], RowStores] = {}
    for op in nested(kernel):
        if op.name in names and op.operands[1] in known:
            _, array, *at = op.operands
            if not at:
                continue
            rest, number = split_index(at[-1])
            key = (op.block, array, *at[:-1], rest, is_nontemporal(op))
            if key not in open_ or number in open_[key].stores:
                open_[key] = RowStores(array, known[array], tuple(at[:-1]), rest)
                found.append(open_[key])
            open_[key].stores[number] = op
        elif not is_pure(op):
            open_.clear()
    return found

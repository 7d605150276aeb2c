"""The rule of `vector.contract`: one thread's share of a matrix product, by the op's instruction family."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlirfuse.dialect.contraction_family import family_of
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.mma.contraction_operands import Product, product_of
from mlirfuse.distribution.threads.fragments import Fragments
from mlirfuse.errors import PassError
from mlirfuse.support.strategies import strategy_of

PACKAGE = "mlirfuse.distribution.mma.families"

Multiply = Callable[[Distributor, ir.Operation, Product], Fragments | None]
"""Emits the product of a `vector.contract` and returns the accumulators behind it; None, with nothing emitted, where
the instruction does not multiply operands of these types in the product's precision."""


@rule("vector.contract")
def contract(d: Distributor, op: ir.Operation) -> None:
    """Adds the product of two tiles in shared memory to the accumulators.

    Raises:
        PassError: the op's instruction does not multiply these types in this precision.
    """
    product = product_of(d, op)
    family = family_of(op)
    multiply: Multiply | None = strategy_of(PACKAGE, family)
    total = None if multiply is None else multiply(d, op, product)
    if total is None:
        types = f"{product.left.element_type} with {product.right.element_type}"
        raise PassError(f"instruction {family!r} does not multiply {types} as {product.precision}", where=op)
    d.tiles[op.results[0]] = total

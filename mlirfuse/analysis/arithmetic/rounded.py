"""Which values reach every reader rounded to half precision, so that they may have an error in single precision."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.support.rewriting import defining_op, number_of

FACTORS = frozenset({"arith.mulf", "arith.divf", "arith.select"})
"""Ops that keep the relative error of an operand; a number is never the condition of a choice."""

HALF = ("f16", "bf16")


def is_rounded(value: ir.Value) -> bool:
    """Whether every use of a value ends in a cast to half precision, through ops that keep its relative error.

    Products, quotients and selected operands keep it, and so does the sum of an exponential and a positive constant;
    other sums may cancel all but the error.
    """
    return all(_is_rounded_by(use.owner.operation, value) for use in value.uses)


def rounds_to_half(op: ir.Operation) -> bool:
    """Whether an op is a cast to half precision."""
    return rounds_to(op, *HALF)


def rounds_to(op: ir.Operation, *names: str) -> bool:
    """Whether an op is a narrowing cast to one of the element types of those names."""
    return op.name == "arith.truncf" and str(element_type(op.results[0].type)) in names


def adds_positive(op: ir.Operation, value: ir.Value, *, at_least: float = 0.0) -> bool:
    """Whether an op adds a positive constant, of that size at least, to a value."""
    others = [operand for operand in op.operands if operand != value]
    return op.name == "arith.addf" and len(others) == 1 and _is_positive(others[0], at_least)


def _is_rounded_by(user: ir.Operation, value: ir.Value) -> bool:
    if rounds_to_half(user):
        return True
    keeps = user.name in FACTORS or _is_positive_sum(user, value)
    return keeps and is_rounded(user.results[0])


def _is_positive_sum(user: ir.Operation, value: ir.Value) -> bool:
    """Whether an addition is of an exponential, which is never negative, and a positive constant."""
    maker = defining_op(value)
    return maker is not None and maker.name == "math.exp" and adds_positive(user, value)


def _is_positive(value: ir.Value, at_least: float) -> bool:
    """Whether a value is a constant above zero, and of that size at least, or a vector of one."""
    maker = defining_op(value)
    if maker is not None and maker.name == "vector.broadcast":
        return _is_positive(maker.operands[0], at_least)
    number = number_of(value)
    return number is not None and number > 0 and number >= at_least

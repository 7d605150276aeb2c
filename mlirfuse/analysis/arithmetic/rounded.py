"""Values whose uses all round to half precision, so that errors in single precision do not matter."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.support.rewriting import defining_op, number_of

FACTORS = frozenset({"arith.mulf", "arith.divf", "arith.select"})
"""Ops that keep the relative error of an operand; for `select`, the operand is never the condition."""

HALF = ("f16", "bf16")


def is_rounded(value: ir.Value) -> bool:
    """Whether every use of a value ends in a cast to half precision, through ops that keep the relative error.

    Products, quotients and selections keep the relative error, and so does the sum of an exponential and a positive
    constant; in other sums all but the error may cancel.
    """
    return all(_is_rounded_by(use.owner.operation, value) for use in value.uses)


def rounds_to_half(op: ir.Operation) -> bool:
    """Whether an op is a cast to half precision."""
    return rounds_to(op, *HALF)


def rounds_to(op: ir.Operation, *names: str) -> bool:
    """Whether an op is a narrowing cast to an element type in `names`."""
    return op.name == "arith.truncf" and str(element_type(op.results[0].type)) in names


def adds_positive(op: ir.Operation, value: ir.Value, *, at_least: float = 0.0) -> bool:
    """Whether an op adds a constant that is positive, and at least `at_least`, to a value."""
    others = [operand for operand in op.operands if operand != value]
    return op.name == "arith.addf" and len(others) == 1 and _is_positive(others[0], at_least)


def _is_rounded_by(user: ir.Operation, value: ir.Value) -> bool:
    if rounds_to_half(user):
        return True
    keeps = user.name in FACTORS or _is_positive_sum(user, value)
    return keeps and is_rounded(user.results[0])


def _is_positive_sum(user: ir.Operation, value: ir.Value) -> bool:
    """Whether an addition is the sum of an exponential, which is never negative, and a positive constant."""
    producer = defining_op(value)
    return producer is not None and producer.name == "math.exp" and adds_positive(user, value)


def _is_positive(value: ir.Value, at_least: float) -> bool:
    """Whether a value is a constant, or a splat of one, that is positive and at least `at_least`."""
    producer = defining_op(value)
    if producer is not None and producer.name == "vector.broadcast":
        return _is_positive(producer.operands[0], at_least)
    number = number_of(value)
    return number is not None and number > 0 and number >= at_least

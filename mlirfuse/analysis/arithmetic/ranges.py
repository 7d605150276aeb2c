"""Intervals that hold the numbers an `f32` value can be, from the ops that compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, isnan, nextafter

import numpy as np
from mlir import ir

from mlirfuse.support.rewriting import defining_op, number_of

Range = tuple[float, float]
"""The least and the greatest number; a value may be NaN beside."""

RangeOf = Callable[[ir.Value], Range]
"""`Ranges.of`."""

ANY: Range = (-inf, inf)
NEVER_NEGATIVE: Range = (0.0, inf)

LEAST_DIVISOR, MOST_DIVISOR = 2.0**-64, 2.0**126
"""Divisors of which reciprocals and remainders need no care: the reciprocals are normal numbers."""

LEAST_SQUARE = 2.0**-100
"""The least number whose root has an exact remainder."""

EX2 = "llvm.nvvm.ex2.approx.ftz"
_SLACK = 2.0**-18
"""Relative error of functions that are not correctly rounded, more than any of them has."""


class Ranges:
    """Ranges of values whose ops stay as they are meanwhile: each is found once.

    Operands are followed through the ops of a kernel, and from the body of a `linalg.generic` to its producers.
    Sums and products are rounded to nearest, which keeps order, so that bounds are rounded too.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, Range] = {}

    def of(self, value: ir.Value) -> Range:
        """The numbers that a value, or an element of a vector or of a tensor, can be if it is not NaN."""
        open_ = [value]
        while open_:  # no recursion, as chains of ops are long
            each = open_[-1]
            sources = () if each in self._known else _computed_of(each)
            missing = [source for source in sources if source not in self._known]
            if missing:
                open_ += missing
                continue
            open_.pop()
            if each not in self._known:
                self._known[each] = _range_from(each, [self._known[source] for source in sources])
        return self._known[value]


def _computed_of(value: ir.Value) -> Sequence[ir.Value]:
    """The values that a value's range follows from: the operands of its op, or the one that it is an element of."""
    type_ = value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type
    if not isinstance(type_, ir.F32Type) or number_of(value) is not None:
        return ()
    if isinstance(value.owner, ir.Block):
        return _element_of(ir.BlockArgument(value))
    maker = defining_op(value)
    if maker is None:
        return ()
    if maker.name == "linalg.generic":
        end = maker.regions[0].blocks[0].operations[-1].operation
        return (end.operands[ir.OpResult(value).result_number],)
    return tuple(maker.operands) if maker.name in _RULES else ()


def _element_of(argument: ir.BlockArgument) -> Sequence[ir.Value]:
    """What the body of a `linalg.generic` reads elements of: not its results, which are not known in advance."""
    generic = argument.owner.owner.operation
    if generic.name != "linalg.generic" or argument.arg_number >= len(generic.operands) - len(generic.results):
        return ()
    return (generic.operands[argument.arg_number],)


def _range_from(value: ir.Value, sources: Sequence[Range]) -> Range:
    """The range of a value from those of what it is computed of; of some ops these need not be known."""
    type_ = value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type
    if not isinstance(type_, ir.F32Type):
        return ANY
    number = number_of(value)
    if number is not None:
        return ANY if isnan(number) else (number, number)
    maker = defining_op(value)
    if maker is None or maker.name == "linalg.generic":
        return sources[0] if sources else ANY
    if maker.name == "llvm.call_intrinsic":
        return NEVER_NEGATIVE if ir.StringAttr(maker.attributes["intrin"]).value == EX2 else ANY
    rule = _RULES.get(maker.name)
    return ANY if rule is None else _rounded(rule(maker, lambda n: sources[n] if sources else ANY))


_Of = Callable[[int], Range]
_Rule = Callable[[ir.Operation, _Of], Range]


def _rounded(bounds: Range) -> Range:
    with np.errstate(over="ignore"):
        low, high = (float(np.float32(bound)) for bound in bounds)
    return (-inf if isnan(low) else low, inf if isnan(high) else high)


def _sum(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _negative(a: Range) -> Range:
    return -a[1], -a[0]


def _size(a: Range) -> Range:
    return (0.0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _product(a: Range, b: Range) -> Range:
    """Zero times infinity is NaN, which no bound need hold; what is beside it is near zero."""
    found = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(found), max(found)


def _multiplied(op: ir.Operation, of: _Of) -> Range:
    if op.operands[0] == op.operands[1]:
        low, high = _size(of(0))
        return low * low, high * high
    return _product(of(0), of(1))


def _divided(op: ir.Operation, of: _Of) -> Range:
    (low, high), (least, most) = of(0), of(1)
    if low < 0 or least <= 0:
        return ANY
    return (0.0 if most == inf else low / most), high / least


def _exponential(op: ir.Operation, of: _Of) -> Range:
    low, high = (exp(min(max(bound, -200.0), 200.0)) for bound in of(0))
    return max(0.0, low * (1 - _SLACK) - 2.0**-126), (inf if high > 2.0**128 else high * (1 + _SLACK))


def _root(op: ir.Operation, of: _Of) -> Range:
    low, high = (max(bound, 0.0) ** 0.5 for bound in of(0))
    return nextafter(low, 0.0), high


def _greater(op: ir.Operation, of: _Of) -> Range:
    return max(of(0)[0], of(1)[0]), max(of(0)[1], of(1)[1])


def _number_or_greater(op: ir.Operation, of: _Of) -> Range:
    """`maxnumf`, which ignores one operand that is NaN."""
    numbers = [of(n)[0] for n, operand in enumerate(op.operands) if number_of(operand) is not None]
    return max(numbers, default=min(of(0)[0], of(1)[0])), max(of(0)[1], of(1)[1])


def _swapped(rule: _Rule) -> _Rule:
    """The rule of a minimum from that of a maximum."""
    return lambda op, of: _negative(rule(op, lambda n: _negative(of(n))))


def _either(op: ir.Operation, of: _Of) -> Range:
    return min(of(1)[0], of(2)[0]), max(of(1)[1], of(2)[1])


def _multiply_add(op: ir.Operation, of: _Of) -> Range:
    return _sum(_multiplied(op, of), of(2))


def _hull(op: ir.Operation, of: _Of) -> Range:
    lows, highs = zip(*(of(n) for n in range(len(op.operands))), strict=True)
    return min(lows), max(highs)


def _same(op: ir.Operation, of: _Of) -> Range:
    return of(0)


def _within(low: float, high: float) -> _Rule:
    return lambda op, of: (low, high)


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("vector.broadcast", "vector.shape_cast", "vector.extract", "vector.to_elements"), _same),
    "vector.from_elements": _hull,
    "arith.addf": lambda op, of: _sum(of(0), of(1)),
    "arith.subf": lambda op, of: _sum(of(0), _negative(of(1))),
    "arith.negf": lambda op, of: _negative(of(0)),
    "arith.mulf": _multiplied,
    "arith.divf": _divided,
    "arith.select": _either,
    "arith.maximumf": _greater,
    "arith.minimumf": _swapped(_greater),
    "arith.maxnumf": _number_or_greater,
    "arith.minnumf": _swapped(_number_or_greater),
    "math.absf": lambda op, of: _size(of(0)),
    "math.exp": _exponential,
    "math.exp2": _within(0.0, inf),
    "math.sqrt": _root,
    "math.fma": _multiply_add,
    **dict.fromkeys(("math.tanh", "math.erf", "math.sin", "math.cos"), _within(-1.0 - _SLACK, 1.0 + _SLACK)),
}

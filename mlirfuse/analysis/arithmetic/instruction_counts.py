"""How many instructions a thread issues for an element of an op's loops, about: for the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

from mlir import ir

from mlirfuse.analysis.arithmetic.ranges import LEAST_DIVISOR, LEAST_SQUARE, RangeOf
from mlirfuse.analysis.arithmetic.rounded import FACTORS, adds_positive, rounds_to_half
from mlirfuse.support.rewriting import integer_of, nested, number_of


@dataclass(frozen=True)
class Instructions:
    """Instructions of one element.

    Attributes:
        plain: additions, products, comparisons, conversions and the like.
        special: instructions of the special-function units.
        double: operations in double precision.
    """

    plain: float = 0.0
    special: float = 0.0
    double: float = 0.0

    def __add__(self, other: Instructions) -> Instructions:
        return Instructions(self.plain + other.plain, self.special + other.special, self.double + other.double)


_ONE = (1.0, 0.0)
_COUNTS: dict[str, tuple[float, float]] = {
    "linalg.yield": (0, 0),
    "linalg.index": (1, 0),
    "arith.constant": (0, 0),
    "arith.extf": (0.5, 0),
    "arith.truncf": (0.5, 0),
    "arith.bitcast": (0, 0),
    "arith.divf": (14, 1),
    "arith.remf": (30, 1),
    "arith.divsi": (20, 1),
    "arith.floordivsi": (25, 1),
    "arith.remsi": (20, 1),
    "math.sqrt": (12, 1),
    "math.rsqrt": (3, 1),
    "math.exp": (7, 1),
    "math.exp2": (2, 1),
    "math.expm1": (21, 0),
    "math.log": (24, 0),
    "math.log1p": (26, 0),
    "math.log2": (26, 0),
    "math.tanh": (13, 2),
    "math.sin": (25, 0),
    "math.cos": (25, 0),
    "math.erf": (22, 1),
    "math.powf": (40, 2),
}
"""Plain and special instructions of operations in single precision, from the machine code that they become for sm_90a:
functions are libdevice's."""

_DOUBLE = {
    "arith.divf": 10.0,
    "math.sqrt": 9.0,
    "math.rsqrt": 8.0,
    "math.exp": 17.0,
    "math.exp2": 18.0,
    "math.expm1": 20.0,
    "math.log": 40.0,
    "math.log1p": 55.0,
    "math.log2": 42.0,
    "math.tanh": 36.0,
    "math.erf": 44.0,
    "math.powf": 95.0,
}
"""Instructions of operations in double precision: those of the PTX that libdevice's functions become, and of ptxas's
divisions and roots."""

_BY_CONSTANT = {"arith.divsi": (5.0, 0.0), "arith.floordivsi": (7.0, 0.0), "arith.remsi": (7.0, 0.0)}
"""Of integers divided by a constant: a product's upper half and shifts (LLVM's; "Hacker's Delight", chapter 10)."""

_BY_POWER_OF_TWO = {"arith.divsi": (3.0, 0.0), "arith.floordivsi": (1.0, 0.0), "arith.remsi": (4.0, 0.0)}
"""The same by a power of two: shifts, and what is added to negative numbers."""

_ROUNDED_EXP = (2.0, 1.0)
"""Of `math.exp` where all uses round its result to half precision (`lower-exponentials`)."""


_EXACT_QUOTIENT, _SHARED_QUOTIENT = (1.0, 0.0), (5.0, 0.0)
"""Of `arith.divf` by a power of two, and by another constant or by a number that several elements share, beside its
reciprocal: `lower-divisions` and `lower-shared-divisions` make products of these."""

_SHARED_RECIPROCAL, _SHARED_BOUNDED_RECIPROCAL = (18.0, 1.0), (5.0, 1.0)
"""Of the reciprocal of such a number: of any, and of one that is known not to be tiny."""

_BOUNDED_QUOTIENT, _BOUNDED_RECIPROCAL = (11.0, 1.0), (5.0, 1.0)
"""Of `arith.divf` by a number that is known not to be tiny: `lower-bounded-divisions`."""

_RECIPROCAL = (8.0, 1.0)
"""Of `arith.divf` of a power of two by any number: `lower-scaled-divisions`."""

_BOUNDED_ROOT = (6.0, 1.0)
"""Of `math.sqrt` of such a number (`lower-math`)."""

_JOINT = {"fuse.moments": (3.0, 0.0), "fuse.exp_sum": (5.0, 1.0)}
"""Of joint reductions, for one element; exponentials are products and powers of two of the special unit."""


def instructions_of(op: ir.Operation, range_of: RangeOf) -> Instructions:
    """Instructions for one element of the loops of a `linalg.generic` or of a joint reduction; none for other ops.

    Args:
        op: the op.
        range_of: the numbers that values can be, as `Ranges` finds them.
    """
    if op.name in _JOINT:
        return Instructions(*_JOINT[op.name])
    if not op.regions:
        return Instructions()
    total = Instructions()
    for inner in nested(op)[1:]:
        plain, special = instruction_count(op, inner, range_of)
        if any(isinstance(result.type, ir.F64Type) for result in inner.results):
            total += Instructions(double=_in_double(inner.name, plain + special))
        else:
            total += Instructions(plain, special)
    return total


def _in_double(name: str, single: float) -> float:
    """Instructions of an op in double precision that are so many in single precision: none where these are none, and of
    a division no more than there, which may be by a constant.
    """
    known = _DOUBLE.get(name, single)
    return min(known, single) if name == "arith.divf" or not single else known


def instruction_count(generic: ir.Operation, op: ir.Operation, range_of: RangeOf) -> tuple[float, float]:
    """Plain and special instructions of one op in the body of a `linalg.generic`; what is the same for all elements is
    computed once.
    """
    if op.results and _is_invariant(op.results[0], generic):
        return 0.0, 0.0
    if op.name == "arith.divf":
        return _quotient(generic, op, range_of)
    if op.name in _BY_CONSTANT and (divisor := integer_of(op.operands[1])):
        return (_BY_CONSTANT if abs(divisor) & (abs(divisor) - 1) else _BY_POWER_OF_TWO)[op.name]
    if op.name == "math.sqrt" and range_of(op.operands[0])[0] >= LEAST_SQUARE:
        return _BOUNDED_ROOT
    if op.name == "math.exp" and _is_rounded(op.results[0]):
        return _ROUNDED_EXP
    return _COUNTS.get(op.name, _ONE)


def _is_invariant(value: ir.Value, generic: ir.Operation) -> bool:
    """Whether a value in the body of an op is the same for all elements: one from outside, or computed of such."""
    body = generic.regions[0].blocks[0]
    if isinstance(value.owner, ir.Block):
        return value.owner != body
    maker = value.owner.operation
    if maker.block != body:
        return True
    return bool(maker.operands) and all(_is_invariant(operand, generic) for operand in maker.operands)


def _is_rounded(value: ir.Value) -> bool:
    """`is_rounded` of an element of tensor ops, whose other ops read it through results of generics."""
    return all(_is_rounded_by(use.owner.operation, use.operand_number, value) for use in value.uses)


def _is_rounded_by(user: ir.Operation, number: int, value: ir.Value) -> bool:
    if user.name == "linalg.yield":
        generic = user.parent
        uses = list(generic.results[number].uses) if number < len(generic.results) else []
        readers = [(use.owner.operation, use.operand_number) for use in uses]
        return bool(readers) and all(
            reader.name == "linalg.generic" and _is_rounded(reader.regions[0].blocks[0].arguments[n])
            for reader, n in readers
        )
    if rounds_to_half(user):
        return True
    return (user.name in FACTORS or adds_positive(user, value)) and _is_rounded(user.results[0])


def _quotient(generic: ir.Operation, division: ir.Operation, range_of: RangeOf) -> tuple[float, float]:
    """Of a division, by what it divides by."""
    divisor = division.operands[1]
    constant = number_of(divisor)
    if constant is not None:
        return _EXACT_QUOTIENT if abs(frexp(constant)[0]) == 0.5 else _SHARED_QUOTIENT
    if _is_invariant(divisor, generic) or _shared_operand(divisor, generic) is not None:
        return _SHARED_QUOTIENT
    numerator = number_of(division.operands[0])
    is_reciprocal = numerator is not None and abs(frexp(numerator)[0]) == 0.5
    if range_of(divisor)[0] < LEAST_DIVISOR:
        return _RECIPROCAL if is_reciprocal else _COUNTS["arith.divf"]
    return _BOUNDED_RECIPROCAL if is_reciprocal else _BOUNDED_QUOTIENT


def reciprocals_of(generic: ir.Operation, range_of: RangeOf) -> dict[int, Instructions]:
    """Instructions for the reciprocals of what several elements are divided by, by the operand that has it."""
    found: dict[int, Instructions] = {}
    for op in nested(generic)[1:]:
        number = _shared_operand(op.operands[1], generic) if op.name == "arith.divf" else None
        if number is not None:
            bounded = range_of(op.operands[1])[0] >= LEAST_DIVISOR
            found[number] = Instructions(*(_SHARED_BOUNDED_RECIPROCAL if bounded else _SHARED_RECIPROCAL))
    return found


def _shared_operand(divisor: ir.Value, generic: ir.Operation) -> int | None:
    """The operand that a divisor is an element of, if it does not vary along all loops; None otherwise."""
    if divisor.owner != generic.regions[0].blocks[0] or "indexing_maps" not in generic.attributes:
        return None
    number = ir.BlockArgument(divisor).arg_number
    map_ = ir.AffineMapAttr(ir.ArrayAttr(generic.attributes["indexing_maps"])[number]).value
    return number if map_.n_symbols == 0 and _dims_of(map_) < map_.n_dims else None


def _dims_of(map_: ir.AffineMap) -> int:
    """The number of loops that an indexing map has as a result of its own."""
    return sum(isinstance(result, ir.AffineDimExpr) for result in map_.results)

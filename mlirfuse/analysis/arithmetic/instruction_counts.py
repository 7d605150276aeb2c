"""How many instructions a thread issues for an element of an op's loops, about: for the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

from mlir import ir

from mlirfuse.support.rewriting import nested, number_of


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
    "arith.divf": (8, 1),
    "arith.remf": (30, 1),
    "arith.divsi": (20, 1),
    "arith.floordivsi": (25, 1),
    "arith.remsi": (20, 1),
    "math.sqrt": (7, 1),
    "math.rsqrt": (3, 1),
    "math.exp": (3, 1),
    "math.exp2": (2, 1),
    "math.expm1": (18, 1),
    "math.log": (5, 1),
    "math.log1p": (20, 1),
    "math.log2": (4, 1),
    "math.tanh": (3, 1),
    "math.sin": (25, 0),
    "math.cos": (25, 0),
    "math.erf": (22, 1),
    "math.powf": (40, 2),
}
"""Plain and special instructions of operations in single precision, from the PTX that they are lowered to."""


_EXACT_QUOTIENT, _SHARED_QUOTIENT = (1.0, 0.0), (5.0, 0.0)
"""Of `arith.divf` by a power of two, and by another constant or by a number that a row or more of elements shares:
`lower-divisions` and `lower-shared-divisions` make products of these."""

_JOINT = {"fuse.moments": (3.0, 0.0), "fuse.exp_sum": (6.0, 1.0)}
"""Of joint reductions, for one element."""


def instructions_of(op: ir.Operation) -> Instructions:
    """Instructions for one element of the loops of a `linalg.generic` or of a joint reduction; none for other ops."""
    if op.name in _JOINT:
        return Instructions(*_JOINT[op.name])
    if not op.regions:
        return Instructions()
    total = Instructions()
    for inner in nested(op)[1:]:
        plain, special = _quotient(op, inner) if inner.name == "arith.divf" else _COUNTS.get(inner.name, _ONE)
        if any(isinstance(result.type, ir.F64Type) for result in inner.results):
            total += Instructions(double=plain + 10 * special)
        else:
            total += Instructions(plain, special)
    return total


def _quotient(generic: ir.Operation, division: ir.Operation) -> tuple[float, float]:
    """Of a division, by what it divides by."""
    divisor = division.operands[1]
    constant = number_of(divisor)
    if constant is not None:
        return _EXACT_QUOTIENT if abs(frexp(constant)[0]) == 0.5 else _SHARED_QUOTIENT
    if not isinstance(divisor.owner, ir.Block) or "indexing_maps" not in generic.attributes:
        return _COUNTS["arith.divf"]
    map_ = ir.AffineMapAttr(
        ir.ArrayAttr(generic.attributes["indexing_maps"])[ir.BlockArgument(divisor).arg_number]
    ).value
    return _SHARED_QUOTIENT if map_.n_symbols == 0 and _dims_of(map_) < map_.n_dims else _COUNTS["arith.divf"]


def _dims_of(map_: ir.AffineMap) -> int:
    """The number of loops that an indexing map has as a result of its own."""
    return sum(isinstance(result, ir.AffineDimExpr) for result in map_.results)

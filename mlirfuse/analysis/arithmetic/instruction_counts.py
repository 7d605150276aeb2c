"""How many instructions a thread issues for an element of an op's loops, about: for the cost model."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlirfuse.support.rewriting import nested


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


def instructions_of(generic: ir.Operation) -> Instructions:
    """Instructions for one element of a `linalg.generic`'s loops."""
    total = Instructions()
    for op in nested(generic)[1:]:
        plain, special = _COUNTS.get(op.name, _ONE)
        if any(isinstance(result.type, ir.F64Type) for result in op.results):
            total += Instructions(double=plain + 10 * special)
        else:
            total += Instructions(plain, special)
    return total

"""How long the machine code of an op of the gpu level is, about, to decide between a loop and unrolled code."""

from __future__ import annotations

from math import prod

from mlir import ir

_ONE = 1.0
_SIZES = {
    "arith.constant": 0.0,
    "arith.bitcast": 0.0,
    "arith.divf": 6.0,
    "arith.remf": 40.0,
    "arith.divsi": 20.0,
    "arith.divui": 20.0,
    "arith.floordivsi": 25.0,
    "arith.remsi": 20.0,
    "arith.remui": 20.0,
    "math.acos": 40.0,
    "math.asin": 40.0,
    "math.atan": 30.0,
    "math.atan2": 45.0,
    "math.cbrt": 25.0,
    "math.cos": 100.0,
    "math.cosh": 25.0,
    "math.erf": 30.0,
    "math.erfc": 45.0,
    "math.exp": 9.0,
    "math.exp2": 5.0,
    "math.expm1": 30.0,
    "math.log": 30.0,
    "math.log10": 30.0,
    "math.log1p": 31.0,
    "math.log2": 32.0,
    "math.powf": 110.0,
    "math.rsqrt": 5.0,
    "math.sin": 100.0,
    "math.sinh": 35.0,
    "math.sqrt": 5.0,
    "math.tan": 110.0,
    "math.tanh": 20.0,
}
"""PTX instructions of an element in single precision, as libdevice and the `lower-` passes have them."""


def code_size(op: ir.Operation) -> float:
    """Instructions that a thread's code has for an op on scalars or on a fragment."""
    if not op.results:
        return _ONE
    type_ = op.results[0].type
    count = prod(ir.VectorType(type_).shape) if isinstance(type_, ir.VectorType) else 1
    return _SIZES.get(op.name, _ONE) * count


def registers_of(type_: ir.Type) -> int:
    """Registers of 32 bits that a value takes."""
    if isinstance(type_, ir.VectorType):
        vector = ir.VectorType(type_)
        return -(-prod(vector.shape) * _bits(vector.element_type) // 32)
    return -(-_bits(type_) // 32)


def _bits(type_: ir.Type) -> int:
    if isinstance(type_, ir.IndexType):
        return 64
    return int(type_.width) if isinstance(type_, ir.FloatType | ir.IntegerType) else 32

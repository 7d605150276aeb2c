"""Application of scalar instructions to vectors of any rank, and constants for such instructions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.support.rewriting import ops_named


def f32_ops(root: ir.Operation, name: str) -> list[ir.Operation]:
    """The operations of a name inside of `root` whose results are `f32`, or vectors of it."""
    return [op for op in ops_named(root, name) if str(element_type(op.results[0].type)) == "f32"]


def by_element(function: Callable[..., ir.Value], *operands: ir.Value) -> ir.Value:
    """`function` of the operands, or of each of their elements where they are vectors; its results have their type.

    Vectors of other ranks than 1 are flattened: MLIR lowers their `vector.to_elements` to invalid LLVM IR where a value
    is computed.
    """
    type_ = operands[0].type
    if not isinstance(type_, ir.VectorType):
        return function(*operands)
    flat = ir.VectorType.get([prod(type_.shape)], type_.element_type)
    elements = (vector.ToElementsOp(_reshaped(flat, operand)).results for operand in operands)
    result = vector.from_elements(flat, [function(*numbers) for numbers in zip(*elements, strict=True)])
    return _reshaped(type_, result)


def f32_constant(value: float) -> ir.Value:
    """A constant `f32`."""
    f32 = ir.F32Type.get()
    return arith.constant(f32, ir.FloatAttr.get(f32, value))


def is_double(type_: ir.Type) -> bool:
    """Whether a type, or that of the elements of a vector, is `f64`."""
    return isinstance(element_type(type_), ir.F64Type)


def constant_like(number: float, target: ir.Type) -> ir.Value:
    """A constant `f32`, `f64` where that is the type, or a vector of that type with it in all places."""
    if is_double(target):
        return broadcast_like(arith.constant(ir.F64Type.get(), number), target)
    return broadcast_like(f32_constant(number), target)


def bits_type(type_: ir.Type) -> ir.Type:
    """The type of the bits of an `f32` or an `f64`, or of a vector of them."""
    bits: ir.Type = ir.IntegerType.get_signless(64 if is_double(type_) else 32)
    return ir.VectorType.get(type_.shape, bits) if isinstance(type_, ir.VectorType) else bits


def bits_like(value: int, target: ir.Type) -> ir.Value:
    """A constant of a type that `bits_type` gives: a number, or a vector with it in all places."""
    return broadcast_like(arith.constant(element_type(target), value), target)


def broadcast_like(value: ir.Value, target: ir.Type) -> ir.Value:
    """A scalar broadcast to `target` if that is a vector type; otherwise the scalar itself."""
    return vector.broadcast(target, value) if isinstance(target, ir.VectorType) else value


def _reshaped(type_: ir.VectorType, value: ir.Value) -> ir.Value:
    return value if value.type == type_ else vector.shape_cast(type_, value)

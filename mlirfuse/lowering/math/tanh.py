"""`lower-tanh`: computes 1 + tanh(x) with the special unit where the result is rounded to half precision."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.analysis.arithmetic.rounded import is_rounded
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import by_element, f32_constant
from mlirfuse.lowering.math.special_unit import exp2, reciprocal
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, number_of, ops_named

SCALE = -2 * log2(e)
MOST_FACTOR = 2.0**64
"""Largest magnitude, of the constant or its reciprocal, that is folded into another constant without overflow."""


@dataclass(frozen=True)
class LowerTanh(Pass):
    """Lowers `1 + tanh(x)` in `f32` to `2 rcp(1 + ex2(-2 x log2(e)))`, where the result is rounded to half precision.

    The tanh form of GELU has this sum. libdevice's `tanhf` takes some twenty instructions, and is exact for small x, an
    exactness that the sum loses; far below zero the sum cancels all digits, which this form keeps. Its relative error
    is below |x| 2^-22 + 2^-21: 2^-14 where the result is 2^-126, and less above. Below, the result is 0, as the
    addition's is below 2^-24. The sum may pass through products and quotients on its way to the cast, which keep a
    relative error. A constant factor of x is folded into the scale. Where the sum is multiplied by half of a value,
    half of the sum is multiplied by the value, which saves an instruction.

    ```mlir
    %x = arith.mulf %v, %c : f32
    %t = math.tanh %x : f32
    %s = arith.addf %t, %one : f32
    %w = arith.mulf %v, %half : f32
    %g = arith.mulf %w, %s : f32
    %h = arith.truncf %g : f32 to bf16
    // lower-tanh
    %0 = arith.mulf %v, %scale_times_c : f32
    %1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%0) : (f32) -> f32
    %2 = arith.addf %1, %one : f32
    %3 = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%2) : (f32) -> f32
    %g = arith.mulf %v, %3 : f32
    ```
    """

    name: ClassVar[str] = "lower-tanh"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            tangents = ops_named(func.operation, "math.tanh")
            sums = {sum_: tangent for tangent in tangents for sum_ in _sums(tangent)}
            for sum_, tangent in sums.items():
                with ir.InsertionPoint(sum_), sum_.location:
                    half = _half_of_sum(*_scaled(tangent.operands[0]))
                    _multiply_by_half(sum_.results[0], half)
                    if list(sum_.results[0].uses):
                        sum_.results[0].replace_all_uses_with(arith.addf(half, half))
                erase(sum_)
            if sums:
                remarks.applied(self, f"{len(sums)} hyperbolic tangents are computed by the special unit", func)
            elif tangents:
                remarks.declined(
                    self,
                    f"{len(tangents)} hyperbolic tangents have uses other than 1 + tanh(x) rounded to half precision",
                    func,
                )


def _sums(tangent: ir.Operation) -> list[ir.Operation]:
    """The uses of a tangent, if all of them are `1 + tanh` for a result in half precision, so that the tangent becomes
    dead.
    """
    users = [use.owner.operation for use in tangent.results[0].uses]
    fits = all(user.name == "arith.addf" and _adds_one(user) and is_rounded(user.results[0]) for user in users)
    return users if fits and element_type(tangent.results[0].type) == ir.F32Type.get(tangent.context) else []


def _adds_one(op: ir.Operation) -> bool:
    return any(number_of(operand) == 1 for operand in op.operands)


def _scaled(value: ir.Value) -> tuple[ir.Value, float]:
    """The value and the constant of a product `value * constant`; the value itself and 1 otherwise."""
    producer = defining_op(value)
    if producer is not None and producer.name == "arith.mulf":
        for number, operand in enumerate(producer.operands):
            factor = number_of(operand)
            if factor is not None and MOST_FACTOR**-1 <= abs(factor) <= MOST_FACTOR:
                return producer.operands[1 - number], factor
    return value, 1.0


def _multiply_by_half(total: ir.Value, half: ir.Value) -> None:
    """Products of `total` and half of a value become products of `half` and the value."""
    for use in list(total.uses):
        user, number = use.owner.operation, use.operand_number
        if user.name == "arith.mulf":
            whole, factor = _scaled(user.operands[1 - number])
            if factor == 0.5:
                user.operands[number], user.operands[1 - number] = half, whole


def _half_of_sum(x: ir.Value, factor: float) -> ir.Value:
    """`(1 + tanh(factor x)) / 2`."""
    return by_element(lambda element: _number(element, factor), x)


def _number(x: ir.Value, factor: float) -> ir.Value:
    scale, one = f32_constant(SCALE * factor), f32_constant(1.0)
    return reciprocal(arith.addf(exp2(arith.mulf(x, scale)), one))

"""`lower-exponentials`: exponentials that need not be exact to the last bit are computed by the special unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.arithmetic.rounded import adds_positive, is_rounded, rounds_to
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import by_element, constant_like, f32_ops
from mlirfuse.lowering.math.special_unit import exp2
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, number_of

LEAST_ADDED = 2.0**-64
"""Least constant whose sum with a subnormal number is the constant itself, after rounding."""
MOST_MINUEND = 64.0
"""Largest magnitude of a constant that may be scaled before a subtraction from it: both products round at 2^-18."""


@dataclass(frozen=True)
class LowerExponentials(Pass):
    """Lowers `math.exp` in `f32` to the special unit's `ex2`, where flags allow it, or half precision hides it.

    libdevice's `expf` takes eight instructions, this three: elementwise kernels stay limited by memory. The result is
    the square of `ex2.approx.ftz(x log2(e) / 2)`: the unit gives 0 below 2^-126, and squaring a larger result gives
    subnormal numbers where they belong. The relative error is |x| 2^-24 + 2^-21, which is less than 2^-17 wherever the
    result is finite and normal. This form is used where every use of the result ends in a cast to half precision, whose
    units are 2^-11 or more. Products and quotients keep a relative error and may stand between; of sums only a
    sigmoid's, 1 + exp(-x), may.

    Two instructions, `ex2.approx.ftz(x log2(e))`, are enough where a subnormal result may be 0: the result is cast to
    float16 at once, or added to a positive constant, or the op carries `fastmath<afn>`, as addends of a sum of at least
    1 do (`distribution/reduce/exp_sums.py`); and with `flush-subnormals`.

    Where all uses are rounded to half precision and x is a small constant less a value, as in bfloat16's sigmoid, the
    constant is scaled in advance, so that one multiply-add computes the scaled difference.

    ```mlir
    %e = math.exp %x : f32
    %q = arith.divf %e, %s : f32
    %h = arith.truncf %q : f32 to f16
    // lower-exponentials
    %0 = arith.mulf %x, %half_of_log2e : f32
    %1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%0) : (f32) -> f32
    %e = arith.mulf %1, %1 : f32
    ```

    Attributes:
        flush_subnormals: whether results below 2^-126 may be 0.
    """

    name: ClassVar[str] = "lower-exponentials"

    flush_subnormals: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            found = f32_ops(func.operation, "math.exp")
            chosen = [op for op in found if _is_flagged(op) or is_rounded(op.results[0])]
            for op in chosen:
                with ir.InsertionPoint(op), op.location:
                    flushes = self.flush_subnormals or _is_flagged(op) or _hides_subnormals(op.results[0])
                    scaled = _scaled(op.operands[0], log2(e) / (1 if flushes else 2), fuses=is_rounded(op.results[0]))
                    op.results[0].replace_all_uses_with(_exponential(scaled, flushes=flushes))
                erase(op)
            if chosen:
                remarks.applied(self, f"{len(chosen)} exponentials are computed by the special unit", func)
            elif found:
                remarks.declined(self, f"{len(found)} exponentials must be exact in single precision", func)


def _is_flagged(op: ir.Operation) -> bool:
    return "afn" in str(op.attributes["fastmath"])


def _hides_subnormals(value: ir.Value) -> bool:
    """Whether all uses of a value give the same result for 0 as for a subnormal number."""
    users = [use.owner.operation for use in value.uses]
    return all(rounds_to(user, "f16") or adds_positive(user, value, at_least=LEAST_ADDED) for user in users)


def _scaled(x: ir.Value, factor: float, *, fuses: bool) -> ir.Value:
    """`x * factor`; as one multiply-add where x is a small constant less a value and the error is allowed."""
    producer = defining_op(x)
    minuend = number_of(producer.operands[0]) if producer is not None and producer.name == "arith.subf" else None
    if not fuses or producer is None or minuend is None or not abs(minuend) <= MOST_MINUEND:
        return arith.mulf(x, constant_like(factor, x.type))
    return math.fma(producer.operands[1], constant_like(-factor, x.type), constant_like(minuend * factor, x.type))


def _exponential(scaled: ir.Value, *, flushes: bool) -> ir.Value:
    power = by_element(exp2, scaled)
    return power if flushes else arith.mulf(power, power)

"""`lower-shared-divisions`: many divisions by one number share its reciprocal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.analysis.arithmetic.ranges import LEAST_DIVISOR, RangeOf, Ranges
from mlirfuse.analysis.arithmetic.rounded import rounds_to_half
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import bits_like, bits_type, broadcast_like, by_element, constant_like
from mlirfuse.lowering.math.quotients import NUDGE, corrected_quotient
from mlirfuse.lowering.math.special_unit import reciprocal
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, number_of, ops_named

LOOPS = ("scf.for", "scf.while")

MANTISSA_BITS, BIAS = 23, 127
"""Format of float32: the bits of 2^e are (BIAS + e) << MANTISSA_BITS."""


@dataclass(frozen=True)
class LowerSharedDivisions(Pass):
    """Lowers `x / s` in `f32`, where a thread divides several elements by one s, through one reciprocal of s.

    `div.rn.f32` costs about a dozen instructions and a branch an element; a softmax divides every element by its row's
    sum, and a loop over rows divides by the same columns in each step. Such an s, or vector of them, is one that all
    elements of a fragment share, that several fragments are divided by, or that no step of a loop changes, and that is
    not known to be bounded (`lower-bounded-divisions`). With r = 1 / (s k) and q = (x k) r, where k, a power of two,
    brings s to where its reciprocal is a normal number, q is within 1.5 units in the last place. Where all users round
    the quotient to half precision that is enough: the rounding is 2^13 times coarser. Elsewhere q is corrected by the
    remainder, as in `lower-divisions`, to a correctly rounded quotient from a magnitude of 2^-101 on, and to within
    1.5 units below. Infinities, zeros and NaN are those of IEEE division: k keeps subnormal numbers from the special
    unit, which flushes them, and is negative where s is not, so that quotients of zero keep their sign. Constant
    divisors are left to `lower-divisions`.

    r has the value of `rcp.rn.f32`, by the steps that ptxas takes for normal numbers: the special unit's reciprocal,
    and one Newton step. For other numbers ptxas calls a function, and spills live registers around the call.

    ```mlir
    %b = vector.broadcast %s : f32 to vector<8xf32>
    %q = arith.divf %x, %b : vector<8xf32>
    %h = arith.truncf %q : vector<8xf32> to vector<8xf16>
    // lower-shared-divisions
    %r0 = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%scaled) : (f32) -> f32   // once for all fragments
    %e = math.fma %scaled, %r0, %minus_one : f32
    %n = arith.negf %e : f32
    %r1 = math.fma %r0, %n, %r0 : f32
    %r = arith.select %e_is_a_number, %r1, %r0 : f32
    %0 = arith.mulf %x, %k : vector<8xf32>
    %q = arith.mulf %0, %r : vector<8xf32>
    %h = arith.truncf %q : vector<8xf32> to vector<8xf16>
    // where the quotient stays in single precision, for each element
    %q0 = llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%0, %above) : (f32, f32) -> f32   // %above = 1 / (s k) + half a unit
    %1 = math.fma %q0, %minus_sk, %0 : f32
    %2 = arith.minnumf %1, %largest : f32
    %q = math.fma %2, %r, %q0 : f32
    ```
    """

    name: ClassVar[str] = "lower-shared-divisions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            groups: dict[tuple[ir.Value, ir.Operation | None], list[ir.Operation]] = {}
            for op in ops_named(func.operation, "arith.divf"):
                divisor = _divisor(op)
                if divisor is not None:
                    groups.setdefault((divisor, _loop_around(op, divisor)), []).append(op)
            range_of = Ranges().of
            shared = {key: ops for key, ops in groups.items() if _pays(*key, ops, range_of)}
            for (_, loop), ops in shared.items():
                # Looked up again, as a divisor may be a quotient that was just replaced.
                divisor = _divisor(ops[0])
                assert divisor is not None
                with ir.InsertionPoint(ops[0] if loop is None else loop), ops[0].location:
                    reciprocal = _reciprocal(divisor)
                for op in ops:
                    with ir.InsertionPoint(op), op.location:
                        op.results[0].replace_all_uses_with(_quotient(op, reciprocal))
                    erase(op)
            if shared:
                remarks.applied(self, f"{sum(map(len, shared.values()))} divisions by {len(shared)} numbers", func)


def _divisor(op: ir.Operation) -> ir.Value | None:
    """What a single-precision division divides by, one number where that is of all elements; None for constants."""
    if str(element_type(op.results[0].type)) != "f32":
        return None
    divisor = op.operands[1]
    owner = defining_op(divisor)
    if owner is not None and owner.name == "vector.broadcast" and not isinstance(owner.operands[0].type, ir.VectorType):
        divisor = owner.operands[0]
    return divisor if number_of(divisor) is None else None


def _loop_around(op: ir.Operation, divisor: ir.Value) -> ir.Operation | None:
    """The outermost loop around a division that the divisor is defined outside of; None where there is none."""
    home = divisor.owner if isinstance(divisor.owner, ir.Block) else divisor.owner.operation.block
    found, around = None, op
    while around.block != home:
        around = around.parent.operation
        if around.name in LOOPS:
            found = around
    return found


def _pays(divisor: ir.Value, loop: ir.Operation | None, ops: Sequence[ir.Operation], range_of: RangeOf) -> bool:
    """Whether a thread divides several times by each number, and knows its reciprocal before the first division."""
    if range_of(divisor)[0] >= LEAST_DIVISOR and not all(_is_one_number(op) for op in ops):
        return False
    times = sum(_width(op) if _is_one_number(op) else 1 for op in ops)
    return loop is not None or (times > 1 and _one_block(ops))


def _is_one_number(op: ir.Operation) -> bool:
    """Whether all elements are divided by the same number."""
    return _divisor(op) != op.operands[1] or not isinstance(op.operands[1].type, ir.VectorType)


def _one_block(ops: Sequence[ir.Operation]) -> bool:
    """Whether the first division comes before all others, so that its reciprocal is known to them."""
    return len({op.block for op in ops}) == 1


@dataclass(frozen=True)
class _Reciprocal:
    """Values that all divisions by one divisor s share.

    Attributes:
        scale: k, a power of two, negative where s is not.
        scaled: s k, which is negative.
        nearest: 1 / (s k), rounded to nearest; IEEE's quotient where s is zero or infinite.
        above: the same times 1 + `NUDGE`, the operand of `corrected_quotient`.
        correction: the same as `nearest`, but -0 where s is zero or infinite.
    """

    scale: ir.Value
    scaled: ir.Value
    nearest: ir.Value
    above: ir.Value
    correction: ir.Value


def _reciprocal(divisor: ir.Value) -> _Reciprocal:
    scale = _scale(divisor)
    scaled = arith.mulf(divisor, scale)
    first = by_element(reciprocal, scaled)
    error = math.fma(scaled, first, constant_like(-1.0, divisor.type))
    better = math.fma(first, arith.negf(error), first)
    above = math.fma(first, arith.subf(constant_like(NUDGE, divisor.type), error), first)
    # For zero and infinity the approximation is exact, and its Newton error is NaN.
    is_number = arith.cmpf(arith.CmpFPredicate.ORD, error, error)
    nearest, above = (arith.select(is_number, value, first) for value in (better, above))
    correction = arith.select(is_number, better, constant_like(-0.0, divisor.type))
    return _Reciprocal(scale, scaled, nearest, above, correction)


def _scale(divisor: ir.Value) -> ir.Value:
    """k: 2^-e for an s of 2^(e-1) up to 2^e, where that is more than 1; 1 up to 2^64, and 2^(64-e) from there on.

    With this k, x k overflows only where the quotient does, and subnormal dividends of small divisors become normal.
    The computation is on the exponent bits, which are ordered as the numbers are.
    """
    integer = bits_type(divisor.type)
    bits = arith.bitcast(integer, divisor)
    exponent = arith.andi(bits, bits_like(0xFF << MANTISSA_BITS, integer))
    inverse = arith.subi(bits_like((2 * BIAS - 1) << MANTISSA_BITS, integer), exponent)
    raised = arith.addi(inverse, bits_like(64 << MANTISSA_BITS, integer))
    size = arith.maxsi(inverse, arith.minsi(raised, bits_like(BIAS << MANTISSA_BITS, integer)))
    return math.copysign(arith.bitcast(divisor.type, size), arith.negf(divisor))


def _quotient(op: ir.Operation, shared: _Reciprocal) -> ir.Value:
    x = op.operands[0]
    scaled = arith.mulf(x, _like(shared.scale, x.type))
    if all(rounds_to_half(use.owner.operation) for use in op.results[0].uses):
        return arith.mulf(scaled, _like(shared.nearest, x.type))
    minus_s = arith.negf(shared.scaled)
    numbers = (_like(value, x.type) for value in (shared.above, minus_s, shared.correction))
    return corrected_quotient(scaled, *numbers)


def _like(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A vector as it is; a number in all places of one."""
    return value if isinstance(value.type, ir.VectorType) else broadcast_like(value, type_)


def _width(op: ir.Operation) -> int:
    result = op.results[0].type
    return prod(result.shape) if isinstance(result, ir.VectorType) else 1

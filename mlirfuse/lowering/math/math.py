"""`lower-math`: math functions for which upstream calls libdevice where LLVM has an intrinsic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import copysign, inf, isnan, nan
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, math

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.analysis.arithmetic.ranges import LEAST_SQUARE, Ranges
from mlirfuse.lowering.kernel_func import has_target, kernels, target_of_kernel
from mlirfuse.lowering.math.elements import bits_like, bits_type, by_element, constant_like, is_double
from mlirfuse.lowering.math.special_unit import inverse_root
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, number_of, ops_named

ROOT_SCALE = 2.0**-32
"""Brings the root of a tiny number that was multiplied by its inverse's square back to what it is."""


EXTREMES = ("arith.maximumf", "arith.minimumf")


@dataclass(frozen=True)
class LowerMath(Pass):
    """Lowers `math.sqrt`, `math.fma`, and maxima of doubles, to intrinsics of LLVM, which the backend rounds correctly.

    Upstream calls libdevice's `__nv_sqrtf`, which asks `__nvvm_reflect("__CUDA_PREC_SQRT")`; LLVM 22 answers 0
    whatever the module's flags say, and the square root comes out as `sqrt.approx`. The intrinsic gives `sqrt.rn`, and
    `sqrt.approx` only under `fastmath<afn>`. (`llvm.intr.sqrt` would not do: `convert-gpu-to-nvvm` refuses it.)
    `sqrt.rn` branches to a function for zero and tiny numbers, and the branch keeps the instructions of other elements
    from filling its waits. So numbers in single precision take the steps that ptxas takes for others, x times the
    special unit's reciprocal root, and one Newton step: of a multiple of x that is not tiny, where x is not known to be
    2^-100 at least.

    Of `__nv_fmaf` and `__nv_fma` the same instructions come out, but LLVM links and inlines a call for each product of
    a tile: that took most of the time of compiling a product in float32. Vectors become scalars where the target packs
    two products into an instruction, whose pairs of registers schedules do not count.

    A maximum or minimum in double precision is no instruction of the hardware; ptxas makes eight of `max.f64`. With a
    constant it is a comparison and a selection. Of two numbers the sign of their difference selects, which orders zeros
    too, and a comparison makes it NaN where one of them is.

    ```mlir
    %r = math.sqrt %x : f64
    %p = math.fma %a, %b, %c : vector<4xf32>
    // lower-math
    %r = llvm.call_intrinsic "llvm.sqrt"(%x) : (f64) -> f64
    %p = llvm.intr.fma(%a, %b, %c) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
    ```
    ```mlir
    %m = arith.maximumf %a, %b : f64
    // lower-math
    %0 = arith.subf %b, %a : f64
    %1 = arith.bitcast %0 : f64 to i64
    %2 = arith.cmpi slt, %1, %zero : i64
    %3 = arith.select %2, %a, %b : f64
    %4 = arith.cmpf uno, %a, %b : f64
    %m = arith.select %4, %nan, %3 : f64
    ```
    """

    name: ClassVar[str] = "lower-math"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ranges = Ranges()  # of the ops before they are replaced
            roots = {op: ranges.of(op.operands[0]) for op in ops_named(func.operation, "math.sqrt")}
            for op, (low, high) in roots.items():
                _replace(op, partial(_root, low=low, high=high))
            if roots:
                remarks.applied(self, f"{len(roots)} square roots are rounded correctly", func)
            fused = [op for op in ops_named(func.operation, "math.fma") if _is_single_or_double(op.results[0].type)]
            apart = bool(fused) and has_target(func) and target_of_kernel(func).has_packed_float32
            for op in fused:
                _replace(op, _multiply_add_each if apart else _multiply_add)
            if fused:
                remarks.applied(self, f"{len(fused)} multiply-adds call no library", func)
            extremes = [
                op for name in EXTREMES for op in ops_named(func.operation, name) if is_double(op.results[0].type)
            ]
            for op in extremes:
                _replace(op, _extreme)
            if extremes:
                remarks.applied(self, f"{len(extremes)} maxima and minima of doubles are selected", func)


def _replace(op: ir.Operation, lowered: Callable[[ir.Operation], ir.Value]) -> None:
    with ir.InsertionPoint(op), op.location:
        value = lowered(op)
    op.results[0].replace_all_uses_with(value)
    erase(op)


def _extreme(op: ir.Operation) -> ir.Value:
    """The maximum or minimum of two doubles, NaN where one is; -0 is less than 0."""
    a, b = op.operands
    largest = op.name == "arith.maximumf"
    for number, other in ((a, b), (b, a)):
        limit = number_of(number)
        if limit is not None and not isnan(limit):
            return _limited(other, number, limit, largest=largest)
    difference = arith.subf(b, a) if largest else arith.subf(a, b)
    bits = bits_type(a.type)
    is_first = arith.cmpi(arith.CmpIPredicate.slt, arith.bitcast(bits, difference), bits_like(0, bits))
    unordered = arith.cmpf(arith.CmpFPredicate.UNO, a, b)
    return arith.select(unordered, constant_like(nan, a.type), arith.select(is_first, a, b))


def _limited(x: ir.Value, constant: ir.Value, limit: float, *, largest: bool) -> ir.Value:
    """The maximum or minimum of a double and a constant, which is taken where both are zeros and it is the one."""
    wins = limit == 0 and (copysign(1, limit) > 0) == largest
    if largest:
        predicate = arith.CmpFPredicate.OLE if wins else arith.CmpFPredicate.OLT
    else:
        predicate = arith.CmpFPredicate.OGE if wins else arith.CmpFPredicate.OGT
    return arith.select(arith.cmpf(predicate, x, constant), constant, x)


def _root(op: ir.Operation, low: float, high: float) -> ir.Value:
    """The root of a number from `low` to `high`."""
    x = op.operands[0]
    if str(element_type(x.type)) == "f32" and "afn" not in str(op.attributes["fastmath"]):
        return _corrected_root(x, is_finite=high < inf) if low >= LEAST_SQUARE else _scaled_root(x)
    # The same bits under another dialect's attribute: `fastmath<afn>` in both.
    flags = ir.Attribute.parse(str(op.attributes["fastmath"]).replace("#arith.", "#llvm."))
    call = llvm.CallIntrinsicOp(op.results[0].type, "llvm.sqrt", [x], [], [], fastmathFlags=flags)
    return call.results[0]


def _scaled_root(x: ir.Value) -> ir.Value:
    """The root of any `f32`, correctly rounded, by that of a number that is not tiny."""
    is_tiny = arith.cmpf(arith.CmpFPredicate.OLT, x, constant_like(LEAST_SQUARE, x.type))
    one, more, less = (constant_like(n, x.type) for n in (1.0, ROOT_SCALE**-2, ROOT_SCALE))
    root = _corrected_root(arith.mulf(x, arith.select(is_tiny, more, one)), is_finite=False, is_positive=False)
    return arith.mulf(root, arith.select(is_tiny, less, one))


def _corrected_root(x: ir.Value, *, is_finite: bool, is_positive: bool = True) -> ir.Value:
    """The root of an `f32` that is not tiny, correctly rounded; of infinity and of zero, that."""
    inverse = by_element(inverse_root, x)
    first = arith.mulf(x, inverse)
    rest = math.fma(arith.negf(first), first, x)
    root = math.fma(rest, arith.mulf(inverse, constant_like(0.5, x.type)), first)
    for number, is_possible in ((inf, not is_finite), (0.0, not is_positive)):
        if is_possible:
            root = arith.select(arith.cmpf(arith.CmpFPredicate.OEQ, x, constant_like(number, x.type)), x, root)
    return root


def _multiply_add(op: ir.Operation) -> ir.Value:
    type_ = op.results[0].type
    if isinstance(type_, ir.VectorType) and type_.rank != 1:
        return _multiply_add_each(op)
    return llvm.FMAOp(*op.operands).result


def _multiply_add_each(op: ir.Operation) -> ir.Value:
    return by_element(lambda a, b, c: llvm.FMAOp(a, b, c).result, *op.operands)


def _is_single_or_double(type_: ir.Type) -> bool:
    element = ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.F32Type | ir.F64Type)

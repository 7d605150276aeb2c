"""Approximations of the special-function unit, of `f32` numbers; subnormal operands and results are 0."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.analysis.arithmetic.ranges import EX2


def exp2(x: ir.Value) -> ir.Value:
    """2 ** x, with a relative error of 2^-22 (PTX ISA, `ex2`)."""
    return _call(EX2, x)


def reciprocal(x: ir.Value) -> ir.Value:
    """1 / x within a unit in the last place (PTX ISA, `rcp`)."""
    return _call("llvm.nvvm.rcp.approx.ftz.f", x)


def inverse_root(x: ir.Value) -> ir.Value:
    """1 / sqrt(x), with a relative error of 2^-22.4 (PTX ISA, `rsqrt`)."""
    return _call("llvm.nvvm.rsqrt.approx.ftz.f", x)


def _call(name: str, x: ir.Value) -> ir.Value:
    return llvm.CallIntrinsicOp(x.type, name, [x], [], []).results[0]

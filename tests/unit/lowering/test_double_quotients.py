"""Divisions of double precision by constants, as they are lowered, in exact arithmetic."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import defining_op, number_of, ops_named

CONSTANT = """
gpu.module @k {{
  gpu.func @k(%x: f64, %out: memref<1xf64>) kernel {{
    %c0 = arith.constant 0 : index
    %c = arith.constant {:.17e} : f64
    %0 = arith.divf %x, %c : f64
    memref.store %0, %out[%c0] : memref<1xf64>
    gpu.return
  }}
}}
"""

CONSTANTS = (3.0, -3.0, 1.003, 0.1, -0.7, 365.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53, 2.0 - 2.0**-52, 1e-5, -1e-19, 1e19)


@pytest.fixture(params=CONSTANTS)
def constant(request: pytest.FixtureRequest) -> float:
    return float(request.param)


def dividing_by(constant: float) -> Callable[[float], float]:
    """`x / constant` by the code that `lower-divisions` makes."""
    module = parse_module(CONSTANT.format(constant), make_context())
    Pipeline.parse("builtin.module(lower-divisions)").run(module)
    assert not ops_named(module.operation, "arith.divf")
    (store,) = ops_named(module.operation, "memref.store")
    return lambda x: _value(store.operands[0], x, module)


def _value(value: ir.Value, x: float, module: ir.Module) -> float:
    op = defining_op(value)
    if op is None:
        return x
    if op.name == "arith.constant":
        return float(number_of(value))
    operands = [_value(operand, x, module) for operand in op.operands]
    if op.name == "arith.negf":
        return -operands[0]
    if op.name == "arith.cmpf":  # ord
        return not any(map(math.isnan, operands))
    if op.name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    if op.name == "math.fma":
        return _rounded(*operands)
    assert op.name in ("arith.mulf", "llvm.call_intrinsic"), op.name
    return _truncated(*operands) if op.name == "llvm.call_intrinsic" else operands[0] * operands[1]


def _rounded(a: float, b: float, c: float) -> float:
    """`a b + c`, rounded once."""
    if math.isinf(c) and math.isfinite(a) and math.isfinite(b):
        return c
    if not all(map(math.isfinite, (a, b, c))) or (a * b == 0 and c == 0):
        return a * b + c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _truncated(a: float, b: float) -> float:
    """`mul.rz.f64`."""
    if not (math.isfinite(a) and math.isfinite(b)) or a * b == 0:
        return a * b
    exact = Fraction(a) * Fraction(b)
    try:
        nearest = float(exact)
    except OverflowError:
        return math.nextafter(math.inf if exact > 0 else -math.inf, 0.0)
    return math.nextafter(nearest, 0.0) if abs(Fraction(nearest)) > abs(exact) else nearest


def test_quotients_are_correctly_rounded(constant: float) -> None:
    """Random ones, and such as lie next to the middle between two numbers."""
    divide, rng = dividing_by(constant), random.Random(0)
    for _ in range(400):
        x = rng.uniform(1, 2) * 2.0 ** rng.randint(-900, 900)
        middle = rng.uniform(1, 2)
        near = float(Fraction(constant) * (Fraction(middle) + Fraction(math.ulp(middle)) / 2))
        for each in (x, -x, near, math.nextafter(near, 0.0), math.nextafter(near, math.inf)):
            assert divide(each) == each / constant, (each, constant)


def test_special_numbers(constant: float) -> None:
    """Zeros keep their sign, infinities stay, and what is too large becomes infinite."""
    divide = dividing_by(constant)
    largest = math.nextafter(math.inf, 0.0)
    for each in (0.0, -0.0, math.inf, -math.inf, largest, -largest, 1e300, 2.0**-500):
        expected = each / constant
        assert divide(each) == expected, (each, constant)
        assert math.copysign(1.0, divide(each)) == math.copysign(1.0, expected), (each, constant)
    assert math.isnan(divide(math.nan))

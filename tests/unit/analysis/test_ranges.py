"""The numbers that values can be, from the ops that compute them."""

from __future__ import annotations

from math import inf

import pytest

from mlirfuse.analysis.arithmetic.ranges import ANY, Range, Ranges
from mlirfuse.compiler.context import make_context
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import ops_named

KERNEL = """
func.func @f(%x: f32, %y: f32, %b: i1, %d: f64, %v: vector<2xf32>) -> {type} {{
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %minus = arith.constant -3.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %big = arith.constant 3.0e38 : f32
  %a = math.absf %x : f32
  %e = math.exp %y : f32
  %t = math.tanh %x : f32
  {op}
  return %r : {type}
}}
"""

CASES: dict[str, tuple[str, Range]] = {
    "argument": ("%r = arith.addf %x, %one : f32", ANY),
    "number": ("%r = arith.addf %one, %two : f32", (3.0, 3.0)),
    "size": ("%r = arith.addf %a, %one : f32", (1.0, inf)),
    "negative size": ("%r = arith.negf %a : f32", (-inf, 0.0)),
    "exponential of a size": ("%r = math.exp %a : f32", (1.0, inf)),
    "exponential": ("%r = arith.addf %e, %two : f32", (2.0, inf)),
    "square": ("%r = arith.mulf %x, %x : f32", (0.0, inf)),
    "square of a bounded number": ("%s = arith.subf %t, %two : f32\n%r = arith.mulf %s, %s : f32", (1.0, 9.0)),
    "product": ("%r = arith.mulf %a, %minus : f32", (-inf, 0.0)),
    "product of any": ("%r = arith.mulf %x, %y : f32", ANY),
    "sum that overflows": ("%s = arith.addf %a, %big : f32\n%r = arith.addf %s, %s : f32", (inf, inf)),
    "difference": ("%r = arith.subf %e, %a : f32", ANY),
    "quotient": ("%s = arith.addf %a, %two : f32\n%r = arith.divf %one, %s : f32", (0.0, 0.5)),
    "quotient by what may be 0": ("%r = arith.divf %one, %a : f32", ANY),
    "greater": ("%r = arith.maximumf %x, %two : f32", (2.0, inf)),
    "less": ("%r = arith.minimumf %x, %two : f32", (-inf, 2.0)),
    "greater of what may be NaN": ("%s = arith.addf %a, %two : f32\n%r = arith.maxnumf %s, %x : f32", ANY),
    "number or greater": ("%r = arith.maxnumf %x, %two : f32", (2.0, inf)),
    "either": ("%r = arith.select %b, %one, %minus : f32", (-3.0, 1.0)),
    "NaN": ("%r = arith.maximumf %nan, %x : f32", ANY),
    "multiply-add": ("%r = math.fma %x, %x, %two : f32", (2.0, inf)),
    "double precision": ("%r = arith.mulf %d, %d : f64", ANY),
    "vector": (
        "%w = vector.broadcast %two : f32 to vector<2xf32>\n%r = arith.maximumf %v, %w : vector<2xf32>",
        (2, inf),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_range(name: str) -> None:
    op, expected = CASES[name]
    module = parse_module(KERNEL.format(op=op, type=op.rsplit(": ")[-1]), make_context())
    (end,) = ops_named(module.operation, "func.return")
    low, high = Ranges().of(end.operands[0])
    assert (low, high) == pytest.approx(expected, rel=1e-4)


def test_values_that_many_ops_share_are_followed_once() -> None:
    """It would otherwise take 3^40 steps."""
    steps = [
        f"%q{n + 1} = arith.select %b, %q{n}, %p{n} : f32\n%p{n + 1} = math.fma %q{n}, %q{n}, %p{n} : f32"
        for n in range(40)
    ]
    op = "\n".join(["%p0 = math.absf %x : f32", "%q0 = math.absf %y : f32", *steps, "%r = arith.addf %q40, %one : f32"])
    module = parse_module(KERNEL.format(op=op, type="f32"), make_context())
    (end,) = ops_named(module.operation, "func.return")
    assert Ranges().of(end.operands[0]) == (1.0, inf)


def test_chains_of_any_length_are_followed() -> None:
    steps = [f"%p{n + 1} = arith.addf %p{n}, %a : f32" for n in range(3000)]
    op = "\n".join(["%p0 = math.absf %y : f32", *steps, "%r = arith.addf %p3000, %one : f32"])
    module = parse_module(KERNEL.format(op=op, type="f32"), make_context())
    (end,) = ops_named(module.operation, "func.return")
    assert Ranges().of(end.operands[0]) == (1.0, inf)

"""Divisions by shared and constant divisors, as they are lowered: every kind of number, and quotients hard to round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mlirfuse.compiler.context import make_context
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import ops_named
from tests.support.numerics.float_code import approximate_reciprocal, evaluate, fma, truncated_product
from tests.support.numerics.quotients import edges, hard_pairs, misrounded, quotients_near_the_largest, random_numbers

SHARED = """
gpu.module @k {
  gpu.func @k(%x: f32, %y: f32, %s: f32, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = arith.divf %x, %s : f32
    %1 = arith.divf %y, %s : f32
    memref.store %0, %out[%c0] : memref<2xf32>
    memref.store %1, %out[%c1] : memref<2xf32>
    gpu.return
  }
}
"""

CONSTANT = """
gpu.module @k {{
  gpu.func @k(%x: f32, %out: memref<1xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c = arith.constant {:.9e} : f32
    %0 = arith.divf %x, %c : f32
    memref.store %0, %out[%c0] : memref<1xf32>
    gpu.return
  }}
}}
"""

CONSTANTS = (3.0, -3.0, 5140.0, 1000.0, 0.1, -0.7, 1.0 + 2.0**-23, 1.0 - 2.0**-24, 2.0 - 2.0**-23, 1e-5, -1e-19, 1e19)


def lowered(text: str, name: str) -> Any:
    module = parse_module(text, make_context())
    Pipeline.parse(f"builtin.module({name})").run(module)
    assert not ops_named(module.operation, "arith.divf")
    return module


@pytest.fixture(scope="module")
def divide() -> Iterator[Any]:
    """`x / s` by the code that `lower-shared-divisions` makes."""
    module = lowered(SHARED, "lower-shared-divisions")
    (func,) = ops_named(module.operation, "gpu.func")
    store = ops_named(module.operation, "memref.store")[0]
    x, _, s, _ = func.regions[0].blocks[0].arguments
    yield lambda a, b: evaluate(store.operands[0], {x: a, s: b})
    del module  # the IR is its until now


def expect_right(found: Any, x: Any, s: Any) -> None:
    wrong = misrounded(found, x, s)
    assert not wrong.any(), [(a.hex(), b.hex(), c.hex()) for a, b, c in zip(x, s, found, strict=True)][wrong.argmax()]


def test_edges(divide: Any) -> None:
    """Zeros, infinities, NaN, subnormal and the largest numbers, and those beside powers of two, by each other."""
    x, s = (pairs.ravel() for pairs in np.meshgrid(edges(), edges()))
    expect_right(divide(x, s), x, s)


@pytest.mark.parametrize("seed", range(4))
def test_random_numbers(divide: Any, seed: int) -> None:
    x, s = random_numbers(1 << 20, 2 * seed), random_numbers(1 << 20, 2 * seed + 1)
    expect_right(divide(x, s), x, s)


def test_quotients_near_the_largest_number(divide: Any) -> None:
    """The product with the reciprocal is beyond the largest number where the quotient need not be."""
    x, s = quotients_near_the_largest(1 << 20)
    found = divide(x, s)
    expect_right(found, x, s)
    assert np.isinf(found).any()
    assert (found == np.finfo(np.float32).max).any()


@pytest.mark.parametrize("above_one", [False, True])
@pytest.mark.parametrize("offset", [1, -1, 3, -3])
def test_quotients_near_the_middle_of_two_numbers(divide: Any, offset: int, above_one: bool) -> None:
    x, s = hard_pairs(np.arange(2**23 + 1, 2**24, 14), offset, above_one=above_one)
    assert len(x) > 10_000
    for scale in (2.0**-40, 1.0, 2.0**80):
        expect_right(divide(x, s * np.float32(scale)), x, s * np.float32(scale))


@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants(constant: float) -> None:
    module = lowered(CONSTANT.format(constant), "lower-divisions")
    (func,) = ops_named(module.operation, "gpu.func")
    (store,) = ops_named(module.operation, "memref.store")
    s = np.float32(constant)
    largest = (np.float32(2.0**128 - 2.0**104) * min(abs(s), np.float32(1.0))).view(np.int32)
    near = (largest + np.arange(-8, 9 if abs(s) < 1 else 1, dtype=np.int32)).view(np.float32)
    x = np.concatenate([edges(), near, -near, random_numbers(1 << 18, 0)])
    expect_right(evaluate(store.operands[0], {func.regions[0].blocks[0].arguments[0]: x}), x, np.full_like(x, s))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")
def test_instructions_round_as_the_gpu_does() -> None:
    """Where rounding to float64 first would give another number, and at the ends of the range."""
    tiny, one, largest = (np.array([v], np.float32) for v in (2.0**-149, 1.0, 2.0**128 - 2.0**104))
    square_is_in_the_middle = one + np.float32(2.0**-12)
    assert fma(square_is_in_the_middle, square_is_in_the_middle, tiny)[0] == 1 + 2.0**-11 + 2.0**-23
    assert fma(square_is_in_the_middle, square_is_in_the_middle, -tiny)[0] == 1 + 2.0**-11
    assert fma(largest, one, -largest)[0] == 0
    assert np.isinf(fma(largest, one, largest)[0])
    assert truncated_product(largest, 2 * one)[0] == largest[0]
    assert truncated_product(square_is_in_the_middle, -square_is_in_the_middle)[0] == -1 - 2.0**-11
    assert np.isinf(truncated_product(np.array([np.inf], np.float32), one)[0])
    assert np.isinf(approximate_reciprocal(tiny)[0])

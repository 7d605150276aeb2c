"""Scalars computed from reductions of whole arrays, and constant operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("shape", [(1025,), (2, 1025), (1025, 1)])
def test_constant_operands_are_stored_where_they_are_multiplied(dtype: str, shape: tuple[int, ...]) -> None:
    """What `x ^ x` is folded to is a constant before the loop along k, whose slots are in it."""

    def product(x: Any, w: Any) -> Any:
        return (x ^ x) @ w, w + 1

    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    w = np.ones((shape[-1], 7), dtype)
    first, second = mf.fuse(product, target="interpret")(x, w)
    assert first.shape == (*shape[:-1], 7)
    assert not first.any()
    np.testing.assert_array_equal(second, w + 1)


def test_a_constant_second_operand_is_stored_as_well() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ (w - w) ** 4

    x, w = np.arange(33 * 127).reshape(33, 127), np.ones((127, 31), np.int64)
    assert not mf.fuse(product, target="interpret")(x, w).any()


@pytest.mark.parametrize("persistence", ["shared", "multi_pass"])
def test_reductions_of_a_last_chunk_of_one_element(persistence: str) -> None:
    """Of 1025 elements the last chunk has one: what is left of its reductions are sums of scalars, outside of tiles."""

    def scaled(x: Any) -> Any:
        return x / mf.max(mf.abs(x), axis=-1, keepdims=True), mf.sum(mf.abs(x), axis=0)

    x = np.random.default_rng(0).choice([-4, -2, 2, 8], 1025).astype(np.float32)
    layout = mf.BlockedLayout((1,), (32,), (16,), (2,), (1,))
    schedule = mf.Schedule((1024,), layout, persistence)
    results = interpreter.run(module_at("gpu", scaled, specs_of([x]), schedule), "scaled", [x])
    for found, exact in zip(results, (x / 8, abs(x).sum()), strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integer_division_by_zero_is_zero(dtype: str) -> None:
    """LLVM stores nothing where a division by zero is undefined; the least number by -1 wraps."""

    def divided(x: Any, y: Any) -> Any:
        return x // y, x % y, x // 0, x % 0, x + 1

    least = np.iinfo(dtype).min
    x, y = np.array([7, -7, 0, least, least, -7], dtype), np.array([0, 0, 0, -1, 0, 2], dtype)
    with np.errstate(all="ignore"):
        wanted = x // y, x % y, 0 * x, 0 * x, x + np.array(1, dtype)
    for found, exact in zip(mf.fuse(divided, target="interpret")(x, y), wanted, strict=True):
        np.testing.assert_array_equal(found, exact)
    compiled = mf.fuse(lambda x: (x // 0, x + 1), target="sm_90a").lower(mf.TensorSpec((33,), "int32")).compile()
    assert sum(binary.ptx.count("st.global") for binary in compiled.binaries.values()) == 2

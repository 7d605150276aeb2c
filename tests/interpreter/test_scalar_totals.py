"""Numbers that are computed of totals over whole arrays, and factors that are the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("shape", [(1025,), (2, 1025), (1025, 1)])
def test_constant_factors_are_stored_where_they_are_multiplied(dtype: str, shape: tuple[int, ...]) -> None:
    """What `x ^ x` is folded to is a constant before the loop along k, whose slots are in it."""

    def product(x: Any, w: Any) -> Any:
        return (x ^ x) @ w, w + 1

    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    w = np.ones((shape[-1], 7), dtype)
    first, second = mf.fuse(product, target="interpret")(x, w)
    assert first.shape == (*shape[:-1], 7)
    assert not first.any()
    np.testing.assert_array_equal(second, w + 1)


def test_a_constant_second_factor_is_stored_as_well() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ (w - w) ** 4

    x, w = np.arange(33 * 127).reshape(33, 127), np.ones((127, 31), np.int64)
    assert not mf.fuse(product, target="interpret")(x, w).any()


def test_totals_of_a_last_chunk_of_one_element() -> None:
    """Of 1025 elements the last chunk has one: what is left of its reductions are sums of scalars, outside of tiles."""

    def scaled(x: Any, w: Any) -> Any:
        largest = mf.maximum(mf.max(mf.abs(-x), axis=-1, keepdims=True), 1e-05)
        above, third = -x / largest >= w, x // 3
        chosen = mf.where(above, largest, largest)
        inverse = mf.reshape(0.5 // third, (1025, 1))
        return ~above, chosen / largest, third >= -1, x == largest, inverse, mf.sum(mf.abs(-x), axis=0)

    x, w = np.random.default_rng(0).integers(3, 9, (2, 1025)).astype(np.float16)
    lowered = mf.fuse(scaled, target="sm_90a").lower(mf.TensorSpec(x.shape, x.dtype), mf.TensorSpec(w.shape, w.dtype))
    compiled = lowered.compile(choose_again=False)
    results = interpreter.run(compiled.module_at("gpu"), "scaled", [x, w])
    wanted = (-x / 8 < w, x / x, x > 0, x == 8, 0.5 // (x // 3)[:, None], x.astype(np.float32).sum().astype(np.float16))
    for found, exact in zip(results, wanted, strict=True):
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

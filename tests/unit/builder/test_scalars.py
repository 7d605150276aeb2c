"""Promotion, Python numbers, NumPy scalars, and scalars that are passed at run time."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from mlirfuse import builder as mf
from mlirfuse.errors import DTypeError, TraceError
from mlirfuse.support.dtypes import ALL, promote
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced

NUMERIC = [dtype for dtype in ALL if dtype.kind != "bool"]


@pytest.mark.parametrize("b", NUMERIC, ids=lambda d: d.name)
@pytest.mark.parametrize("a", NUMERIC, ids=lambda d: d.name)
def test_tensors_promote(a, b) -> None:
    x, y = np.array([1, 2, 3]).astype(a.numpy), np.array([5, 6, 7]).astype(b.numpy)
    if promote(a, b).is_float8:
        with pytest.raises(DTypeError, match="add does not compute in float8"):
            run(operator.add, x, y)
        return
    result = run(operator.add, x, y)
    assert result.dtype == promote(a, b).numpy
    np.testing.assert_array_equal(result.astype(np.int64), [6, 8, 10])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64"])
def test_python_numbers_adopt_the_dtype(dtype) -> None:
    spec = mf.TensorSpec(4, dtype)
    results = []
    traced(lambda x: results.extend((x + 1, 1 - x, x * 2, x < 1)) or x, spec)
    assert [r.dtype.name for r in results] == [dtype] * 3 + ["bool"]


def test_a_float_with_integers_gives_float32() -> None:
    x = np.array([1, 2], np.int64)
    result = run(lambda x: x + 0.5, x)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [1.5, 2.5])


def test_python_numbers_are_rounded_to_the_dtype_first() -> None:
    x = np.array([1000, 3, 0.1], np.float16)
    np.testing.assert_array_equal(run(lambda x: x / 3.1, x), x / np.float16(3.1))
    np.testing.assert_array_equal(run(lambda x: x == 0.1, x), [False, False, True])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(lambda x: x + 1e6, x), x + np.float16(1e6))


def test_numpy_scalars_keep_their_dtype() -> None:
    x = np.array([1, 2], np.float16)
    for fn in (
        lambda x: x + np.float32(0.1),
        lambda x: np.float32(0.1) + x,
        lambda x: x + np.array(0.1, np.float32),
        lambda x: np.multiply(x, np.float32(3)),
    ):
        result = run(fn, x)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, fn(x.astype(np.float32)))
    assert run(lambda x: x + np.float16(0.1), x).dtype == np.float16
    np.testing.assert_array_equal(run(lambda x: np.float32(5) - x, x), [4, 3])
    np.testing.assert_array_equal(run(lambda x: np.float32(5) > x, x), [True, True])


def test_constants_are_built_inside_the_body() -> None:
    module = traced(lambda x: x * 0.5, mf.TensorSpec(4, "float16"))
    (constant,) = ops(module, "arith.constant")
    assert constant.operation.parent.name == "linalg.generic"
    assert str(constant.result.type) == "f16"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_runtime_scalars(dtype) -> None:
    x = np.array([1, 2, 3], dtype)
    results = run(lambda x, a, n: (x * a, a - x, x + n, x < a), x, 1.1, 7)
    if dtype == np.int32:
        f = x.astype(np.float32)
        expected = (f * np.float32(1.1), np.float32(1.1) - f, x + np.int32(7), f < np.float32(1.1))
    else:
        expected = (x * dtype(1.1), dtype(1.1) - x, x + dtype(7), x < dtype(1.1))
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_array_equal(actual, wanted)


def test_scalar_expressions_are_computed_in_float64_inside_the_body() -> None:
    x = np.array([1, 2], np.float32)
    fn = lambda x, a, n: x * (1 / (a + n) ** 2 - mf.maximum(a, 0.5))  # noqa: E731
    np.testing.assert_allclose(run(fn, x, 0.3, 2), x * np.float32(1 / 2.3**2 - 0.5), rtol=1e-7)
    module = traced(fn, spec_of(x), mf.ScalarSpec("float"), mf.ScalarSpec("int"))
    assert {str(op.result.type) for op in ops(module, "arith.addf")} == {"f64"}
    host = [op.operation.name for op in module.body.operations[0].body.blocks[0].operations]
    assert host == ["tensor.empty", "linalg.generic", "func.return"]


def test_runtime_bools_select() -> None:
    x = np.array([1, 2], np.float32)
    module = traced(lambda x, flag: mf.where(flag, x, -x), spec_of(x), mf.ScalarSpec("bool"))
    assert str(module.body.operations[0].type.inputs[1]) == "i64"
    for flag in (0, 1):
        np.testing.assert_array_equal(run(lambda x, flag: mf.where(flag != 0, x, -x), x, flag), x if flag else -x)


def test_scalars_fill_and_choose() -> None:
    x = np.array([1, -2], np.float16)
    np.testing.assert_array_equal(run(lambda x, a: mf.full_like(x, a), x, 0.1), np.full_like(x, 0.1))
    chosen = run(lambda x, a: mf.where(x > 0, a, 0.0), x, 0.1)
    assert chosen.dtype == np.float32
    np.testing.assert_array_equal(chosen, np.array([0.1, 0], np.float32))


def test_errors() -> None:
    spec = mf.TensorSpec(4, "float32")
    cases = [
        (lambda x: x + np.ones(4, np.float32), TraceError, "pass it as an argument"),
        (lambda x: np.ones(4, np.float32) * x, TraceError, "pass it as an argument"),
        (lambda x: x + "a", TraceError, "'a' of type str"),
        (lambda x: x + None, TraceError, "None of type NoneType"),
        (lambda x: x + 1j, TraceError, "type complex"),
        (lambda x: x + np.complex64(1j), DTypeError, "complex64"),
        (lambda x: (x > 0) + x, DTypeError, "cannot mix bool with float32"),
        (lambda x: (x > 0) + 1, DTypeError, "cannot mix bool with int64"),
        (lambda x: x + mf.sqrt(2.0), TraceError, "only Python numbers"),
        (lambda x: np.arctan2(x, x), mf.UnsupportedError, "np.arctan2"),
        (lambda x: np.add.reduce(x), mf.UnsupportedError, "np.add.reduce"),
        (lambda x: np.sum(x), mf.UnsupportedError, "np.sum"),
    ]
    for fn, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            traced(fn, spec)
        assert caught.value.where is not None, message
        assert "builder/test_scalars.py:" in caught.value.where

"""`fusion="off"`: a kernel an operation, results as with fusion, and nothing changes where it is not asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.builder.trace import trace
from mlirfuse.compiler.context import make_context
from mlirfuse.dialect.attributes import OPERATION

X, Y, LINE = (5, 32), (5, 32), (32,)
MATRIX = (16, 32)


def softmax(x: Any) -> Any:
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def product_with_gelu(x: Any, w: Any, b: Any) -> Any:
    y = x @ w.T + b
    return 0.5 * y * (1 + mf.erf(y * 0.7071))


def doubled_in_a_loop(x: Any) -> Any:
    """One call site, three calls."""
    for _ in range(3):
        x = x * 2
    return x


def gradients(x: Any, y: Any) -> Any:
    return mf.sum(x * y, axis=-1), mf.sum(x, axis=0)


def constant(x: Any) -> Any:
    """A kernel that reads nothing is told its extents as numbers."""
    return mf.ones_like(x) + x


CASES: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]], int]] = {
    "product and sum": (lambda x, y: x * 2 + y, [X, Y], 2),
    "readers of one array": (lambda x: (x * 2, x * 3), [X], 2),
    "equal operations": (lambda x: (mf.exp(x) + 1, mf.exp(x) * 2), [X], 4),
    "loop": (doubled_in_a_loop, [X], 3),
    "Python's sum": (lambda x, y: sum([x, y]), [X, Y], 2),
    "ufunc": (lambda x: np.float32(2) * x, [X], 1),
    "clip": (lambda x: mf.clip(x, 0, 1), [X], 1),
    "mean": (lambda x: mf.mean(x, axis=-1, keepdims=True), [X], 1),
    "variance": (lambda x: mf.var(x, axis=-1), [X], 1),
    "softmax": (softmax, [X], 5),
    "product with epilogue": (product_with_gelu, [(16, 32), MATRIX, (16,)], 7),
    "operand of a product": (lambda x, w: (x * 2) @ w.T, [(16, 32), MATRIX], 2),
    "two orders": (gradients, [X, Y], 3),
    "casts": (lambda x: x.astype(mf.float64).astype(mf.float32), [X], 2),
    "views": (lambda x: (x.T, x[:, None], x.reshape(-1)), [X], 0),
    "view between": (lambda x: mf.exp((x * 2)[:, None].mT), [X], 2),
    "reshape between": (lambda x: mf.exp(mf.sum(x, axis=-1).reshape(5, 1)), [X], 2),
    "transposed and reshaped": (lambda x: mf.exp(x.T.reshape(-1)), [X], 2),
    "constant": (constant, [X], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_each_operation_is_a_kernel(name: str) -> None:
    function, shapes, kernels = CASES[name]
    lowered = mf.fuse(function, fusion="off").lower(*(mf.TensorSpec(shape, mf.float32) for shape in shapes))
    assert len(lowered.compile(choose_again=False).infos) == kernels


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_fused_kernels(name: str) -> None:
    function, shapes, _ = CASES[name]
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
    apart = mf.fuse(function, target="interpret", fusion="off")(*arrays)
    together = mf.fuse(function, target="interpret")(*arrays)
    for found, wanted in zip(_tuple(apart), _tuple(together), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_casts_of_one_call_are_in_its_kernel() -> None:
    specs = mf.TensorSpec((16, 32), mf.float16), mf.TensorSpec((16, 32), mf.float32)
    compiled = mf.fuse(lambda x, w: mf.matmul(x, w.T), fusion="off").lower(*specs).compile(choose_again=False)
    assert len(compiled.infos) == 1


def test_roundings_between_kernels_stay_with_fast_math() -> None:
    x = np.float16([[1.001, 0.3, 7.7]])
    function = lambda x: (x * 3 + 1) * 3  # noqa: E731
    apart = mf.fuse(function, target="interpret", fusion="off", fast_math=True)(x)
    np.testing.assert_array_equal(apart, (x * np.float16(3) + np.float16(1)) * np.float16(3))


def test_explain_says_why() -> None:
    spec = mf.TensorSpec((None, 32), mf.float32)
    compiled = mf.fuse(softmax, fusion="off").lower(spec).compile(choose_again=False)
    assert ": fusion is off (" in compiled.explain(verbose=True)


def test_schedules_and_mix_order_go_with_it() -> None:
    specs = [mf.TensorSpec((None, 32), mf.float32)] * 2
    assert len(mf.fuse(gradients, fusion="off", mix_order="split").lower(*specs).compile().schedules) == 3
    with pytest.raises(mf.MlirFuseError, match="mix_order='fused' asks for fusion, and fusion is 'off'"):
        mf.fuse(gradients, mix_order="fused").with_options(fusion="off")


def test_fusion_numbers_nothing() -> None:
    spec = mf.TensorSpec((None, 32), mf.float32)
    assert OPERATION not in mf.fuse(softmax).lower(spec).as_text()
    assert mf.fuse(softmax).lower(spec).as_text() == mf.fuse(softmax, fusion="auto").lower(spec).as_text()


def test_calls_are_numbered_in_order() -> None:
    text = str(trace(softmax, [mf.TensorSpec((4, 32), mf.float32)], context=make_context(), fusion=False))
    numbers = [int(line.split(f"{OPERATION} = ")[1].split()[0]) for line in text.splitlines() if OPERATION in line]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(5))


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)

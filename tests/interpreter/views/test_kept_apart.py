"""Programs some of whose ops make no kernel together: they compile to several, and give what float64 does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf


def softmax(x: Any) -> Any:
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def unrelated_sums(x: Any, y: Any) -> Any:
    """The sum of a vector, and rows of a matrix, which only their difference has to do with each other."""
    z = softmax(x) - y / mf.sum(y)
    return mf.sum((z - mf.mean(z, axis=0, keepdims=True)).T ** 2, axis=1)


def _unrelated_sums(x: Any, y: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    z = e / e.sum(-1, keepdims=True) - y / y.sum()
    return ((z - z.mean(0)) ** 2).sum(0)


def other_batches(x: Any, y: Any) -> Any:
    """A total of what the other result is broadcast from, over fewer dimensions."""
    return x * y, mf.sum(y)


def copy_and_product(x: Any, y: Any) -> Any:
    """A copy of an operand is no part of the product."""
    turned = mf.permute_dims(y, (1, 0))
    return y @ y, mf.permute_dims(turned, (1, 0))


def products_in_two_types(x: Any, y: Any) -> Any:
    """A product of one step, with an operand that is cast in its kernel, is used twice."""
    z = x @ y.astype(mf.float64).T
    return z + z, z * 2


def product_with_itself(x: Any, y: Any) -> Any:
    """Rows and columns of the result are one dimension of the argument."""
    return x @ x.mT, mf.sum(x)


CASES: list[tuple[Callable[..., Any], Callable[..., Any], Sequence[tuple[int, ...]]]] = [
    (unrelated_sums, _unrelated_sums, [(9, 9), (9,)]),
    (other_batches, lambda x, y: (x * y, y.sum()), [(5, 6, 7), (6, 7)]),
    (copy_and_product, lambda x, y: (y @ y, y), [(4, 4), (4, 4)]),
    (products_in_two_types, lambda x, y: (2 * x @ y.T, 2 * x @ y.T), [(5, 3), (7, 3)]),
    (product_with_itself, lambda x, y: (x @ x.swapaxes(-1, -2), x.sum()), [(2, 3, 4, 5), (1,)]),
]


@pytest.mark.parametrize("dynamic_products", [False, True])
@pytest.mark.parametrize(("fn", "reference", "shapes"), CASES, ids=[fn.__name__ for fn, _, _ in CASES])
def test_results(
    fn: Callable[..., Any], reference: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dynamic_products: bool
) -> None:
    rng = np.random.default_rng(0)
    dtypes = (np.float64, np.float32)
    arrays = [rng.standard_normal(shape).astype(d) for shape, d in zip(shapes, dtypes, strict=True)]
    results = mf.fuse(fn, target="interpret", dynamic_products=dynamic_products)(*arrays)
    expected = reference(*(a.astype(np.float64) for a in arrays))
    made, wanted = (r if isinstance(r, tuple) else (r,) for r in (results, expected))
    for result, exact in zip(made, wanted, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)

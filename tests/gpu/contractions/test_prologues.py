"""Operands that a product's kernel computes itself, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.gathered_prologues import CASES as GATHERED
from tests.support.contractions.gathered_prologues import normalised
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.contractions.prologues import CASES, Case
from tests.support.contractions.stored_operands import (
    LARGE,
    SMALL,
    StoredOperands,
    one_array,
    one_kernel_for_both,
    shared_inputs,
)
from tests.support.gpu.torch_arrays import to_numpy, to_torch

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_computed_operands(case: Case) -> None:
    inputs = case.inputs()
    fn = mf.fuse(case.fn)
    tensors = [to_torch(a) for a in inputs]
    first, *others = (to_numpy(fn(*tensors)) for _ in range(3))
    case.check(first, inputs)
    assert all((other == first).all() for other in others)


EXTENTS = ((512, 384, 1024), (33, 129, 72), (130, 70, 1000), (16, 1024, 4096))


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
@pytest.mark.parametrize("split", [1, 3])
def test_weights_of_bytes_are_exact(extents: tuple[int, int, int], split: int) -> None:
    m, n, k = extents
    rng = np.random.default_rng(split)
    x = rng.integers(-2, 3, (m, k)).astype(np.float16)
    q = (rng.integers(-3, 4, (n, k)) * (rng.random((n, k)) < 8 / k)).astype(np.int8)
    scale = (2.0 ** rng.integers(-2, 3, n)).astype(np.float16)

    def product(x, q, scale):
        return x @ (q.astype(x.dtype) * scale[:, None]).T

    schedule = pinned_schedule(Product(m, n, k, "nt", "float16"), 64, 64, split, instruction="mma")
    expected = x.astype(np.float64) @ (q * scale[:, None].astype(np.float64)).T
    for fn in (mf.fuse(product), mf.fuse(product, schedule=schedule)):
        np.testing.assert_array_equal(to_numpy(fn(*map(to_torch, (x, q, scale)))), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["forward", "wgrad", "dgrad"])
@pytest.mark.parametrize("case", GATHERED)
def test_operands_that_convolutions_gather(case: str, name: str, dtype: str) -> None:
    given = normalised(name, GATHERED[case], dtype)
    found = mf.fuse(given.fn)(*map(to_torch, given.inputs))
    np.testing.assert_array_equal(to_numpy(found).astype(np.float64), given.expected)


@pytest.mark.parametrize("case", [*SMALL, *LARGE], ids=str)
def test_operands_that_are_stored_in_another_order(case: StoredOperands) -> None:
    inputs = case.inputs()
    found = mf.fuse(case.fn)(*map(to_torch, inputs))
    np.testing.assert_array_equal(to_numpy(found).astype(np.float64), case.expected(*inputs))


@pytest.mark.parametrize("extents", [(64, 64, 32), (200, 136, 72)], ids=str)
@pytest.mark.parametrize("fn", [one_kernel_for_both, one_array])
def test_what_computes_both_operands_stores_them_in_another_order(fn, extents: tuple[int, int, int]) -> None:
    inputs, expected = shared_inputs(fn, extents)
    found = mf.fuse(fn)(*map(to_torch, inputs))
    np.testing.assert_array_equal(to_numpy(found).astype(np.float64), expected)

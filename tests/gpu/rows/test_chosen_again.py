"""Functions whose first schedules spill, on a GPU: what is taken instead spills nothing and is right."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def _standardized(x):
    return (x - mf.mean(x, axis=0)) / mf.std(x, axis=0)


def _softmax(x):
    e = mf.exp(x - mf.max(x, axis=1, keepdims=True))
    return e / mf.sum(e, axis=1, keepdims=True)


def _softmax_of(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _gated(x):
    h = x * mf.sigmoid(x)
    return h / mf.max(mf.abs(h), axis=1, keepdims=True)


def _gated_of(x):
    h = x / (1 + np.exp(-x))
    return h / np.abs(h).max(1, keepdims=True)


CASES = {
    "standardized": (_standardized, lambda x: (x - x.mean(0)) / x.std(0), (8192, 127), "float32"),
    "standardized in float64": (_standardized, lambda x: (x - x.mean(0)) / x.std(0), (8192, 127), "float64"),
    "gates": (_gated, _gated_of, (512, 5120), "float32"),
    "softmax across": (_softmax, _softmax_of, (64, 129, 257), "float64"),
}


@pytest.mark.parametrize("name", CASES)
def test_same_as_numpy(name):
    fn, reference, shape, dtype = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    got = mf.fuse(fn)(cupy.asarray(x)).get()
    check = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    check(got, reference(x.astype(np.float64)))

"""Functions whose first schedules spill, by ptxas's own account: what is taken instead does not."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.lowering.spills import are_known
from mlirfuse.target import target_of

pytestmark = pytest.mark.skipif(not are_known(target_of("sm_90a")), reason="ptxas is not installed")


def _standardized(x):
    return (x - mf.mean(x, axis=0)) / mf.std(x, axis=0)


def _softmax(x):
    e = mf.exp(x - mf.max(x, axis=1, keepdims=True))
    return e / mf.sum(e, axis=1, keepdims=True)


def _layer_norm(x, w, b):
    scale = mf.sqrt(mf.var(x, axis=-1, keepdims=True) + 1e-5)
    return (x - mf.mean(x, axis=-1, keepdims=True)) / scale * w + b


def _shifted(x):
    return mf.log1p(mf.erf(x)) * mf.std(mf.log1p(x), axis=-1, keepdims=True)


def _silu_of_product(x, w):
    h = mf.astype(x @ w, mf.float32)
    return h / (1 + mf.exp(-h))


def _spec(*shape, dtype=mf.float32):
    return mf.TensorSpec(shape, dtype)


CASES = {
    "standardized": (_standardized, [_spec(8192, 127)]),
    "standardized in float64": (_standardized, [_spec(8192, 127, dtype=mf.float64)]),
    "softmax across": (_softmax, [_spec(64, 129, 257, dtype=mf.float64)]),
    "odd LayerNorm": (_layer_norm, [_spec(1024, 5141, dtype=mf.float16)] + [_spec(5141, dtype=mf.float16)] * 2),
    "functions of a library": (_shifted, [_spec(None, 4096, dtype=mf.float64)]),
    "SiLU of a product": (_silu_of_product, [_spec(2048, 2048, dtype=mf.bfloat16)] * 2),
}


@pytest.mark.parametrize("name", CASES)
def test_no_kernel_spills(name):
    fn, specs = CASES[name]
    lowered = mf.fuse(fn, target="sm_90a").lower(*specs)
    compiled = lowered.compile()
    assert [kernel.spill_store_bytes for kernel in compiled.resources] == [0] * len(compiled.binaries)
    assert compiled.attempts, "the first schedules spill with ptxas 13.0 to 13.5"
    assert "was taken instead" in compiled.explain()

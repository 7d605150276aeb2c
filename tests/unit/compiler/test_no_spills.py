"""Functions whose first schedules spill, by ptxas's own account: what is taken instead does not."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.lowering.ptx.spills import are_known
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


def _norm_gradients(dy, x, w, mean, rstd):
    g, n = mf.astype(dy, mf.float32), (mf.astype(x, mf.float32) - mean) * rstd
    gw = g * w
    along = mf.mean(gw * n, axis=-1, keepdims=True)
    dx = (gw - n * along - mf.mean(gw, axis=-1, keepdims=True)) * rstd
    return mf.astype(dx, x.dtype), mf.sum(g * n, axis=0), mf.sum(g, axis=0)


def _shifted(x):
    return mf.log1p(mf.erf(x)) * mf.std(mf.log1p(x), axis=-1, keepdims=True)


def _silu_of_product(x, w):
    h = mf.astype(x @ w, mf.float32)
    return h / (1 + mf.exp(-h))


def _spec(*shape, dtype=mf.float32):
    return mf.TensorSpec(shape, dtype)


CASES = {
    "softmax across": (_softmax, [_spec(64, 129, 257, dtype=mf.float64)]),
    "gradients of a LayerNorm": (
        _norm_gradients,
        [*[_spec(4096, 5140, dtype=mf.bfloat16)] * 2, _spec(5140, dtype=mf.bfloat16), *[_spec(4096, 1)] * 2],
    ),
}


def _rowwise(x):
    return mf.log1p(mf.erf(x) * mf.max(x, axis=-1, keepdims=True))


def _scaled(x):
    low = mf.min(x, axis=0)
    return (x - low) / (mf.max(x, axis=0) - low)


def _gated(x, wg, wu):
    g, u = x @ wg, x @ wu
    return g * mf.sigmoid(g) * u


def _gelu_with_residual(x, w, b, residual):
    y = x @ w + b
    return y * 0.5 * (1 + mf.erf(y * 0.7071067811865476)) + residual


def _weighted_softmax(x, y, z):
    e = mf.exp(mf.sin(x) * 0.3 + y - mf.max(y, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True) * mf.sin(z), mf.sum(e * z, axis=-1)


def _clipped_product(x, w):
    return mf.abs(x @ w) + 1


def _product_of_means(x, w, s):
    y = mf.abs(x * (s - x)) + 1
    return mf.mean(y, axis=-1) @ (mf.matrix_transpose(w) + 2)


def _total_maximum(x, y, z):
    low = mf.maximum(y, mf.minimum(x, 2.0))
    size = mf.abs(low)
    most = mf.maximum(mf.max(size, axis=(0, 1, 2), keepdims=True), 1e-5)
    return low != z, mf.sin(size), low / most, mf.round(mf.log1p(low)), z + x


def _several_sets(x, y):
    x = x | x
    every = mf.matrix_transpose(mf.reshape(mf.all(x, axis=(2, 0)), (1, 129)))
    mask = mf.reshape(x, (2, 1, 129, 257))
    z = mf.clip(mf.astype(mask, mf.int8), -2, 3)
    size = mf.abs(y) + 1e-5
    above = mf.remainder(mf.astype(size, mf.float32), y) > mf.astype(mask, mf.int8)
    some = mf.any(mf.maximum(z, y), axis=-1, keepdims=True)
    logs = mf.log(size)
    return every, above, some, mask & mask, logs, logs, mf.std(z, axis=-1)


def _norms(columns, *, dtype):
    return {
        f"LayerNorm of {rows or 'any number of'} rows of {columns} {dtype}": (
            _layer_norm,
            [_spec(rows, columns, dtype=dtype), *[_spec(columns, dtype=dtype)] * 2],
        )
        for rows in (4096, None)
    }


FORMS = {
    "standardized": (_standardized, [_spec(8192, 127)]),
    "standardized in float64": (_standardized, [_spec(8192, 127, dtype=mf.float64)]),
    "functions of a library": (_shifted, [_spec(None, 4096, dtype=mf.float64)]),
    "row maximum, erf and log1p": (_rowwise, [_spec(1024, 4096, dtype=mf.float16)]),
    "scaled to the range": (_scaled, [_spec(4096, 8)]),
    "gate and up": (_gated, [_spec(2048, 2048, dtype=mf.float16), *[_spec(2048, 5632, dtype=mf.float16)] * 2]),
    "bias, GELU, residual": (
        _gelu_with_residual,
        [
            _spec(2048, 1024, dtype=mf.bfloat16),
            _spec(1024, 4096, dtype=mf.bfloat16),
            _spec(4096, dtype=mf.bfloat16),
            _spec(2048, 4096, dtype=mf.bfloat16),
        ],
    ),
    "calls in long rows": (_weighted_softmax, [_spec(64, 40001, dtype=mf.float64)] * 3),
    **{
        f"{rows or 'any number of'} x {k} x 31 of {dtype}": (
            _clipped_product,
            [_spec(rows, k, dtype=dtype), _spec(k, 31, dtype=dtype)],
        )
        for dtype in (mf.float64, mf.int64)
        for rows, k in ((33, 31), (None, 7))
    },
    "odd operands that are computed": (
        _product_of_means,
        [_spec(2, 129, 257, dtype=mf.float16), _spec(127, 129, dtype=mf.float16), -2.25],
    ),
    "two dimensions reduced, both long": (
        _total_maximum,
        [_spec(*shape, dtype=mf.float64) for shape in ((129, 129, 2, 1), (1, 129, 2, 1), (129, 2, 1))],
    ),
    "several sets of dimensions": (
        _several_sets,
        [_spec(2, 129, 257, dtype=mf.bool_), _spec(2, 1, 129, 257, dtype=mf.bfloat16)],
    ),
    "SiLU of a product": (_silu_of_product, [_spec(2048, 2048, dtype=mf.bfloat16)] * 2),
    **_norms(768, dtype=mf.float16),
    **_norms(5141, dtype=mf.float32),
}
"""What spills at first, or used to: whichever schedule is taken, none does at last."""


@pytest.mark.parametrize("name", FORMS)
def test_no_form_spills(name):
    fn, specs = FORMS[name]
    compiled = mf.fuse(fn, target="sm_90a").lower(*specs).compile()
    spilled = [(kernel.spill_store_bytes, kernel.spill_load_bytes) for kernel in compiled.resources]
    assert spilled == [(0, 0)] * len(compiled.binaries)


@pytest.mark.parametrize("name", CASES)
def test_no_kernel_spills(name):
    fn, specs = CASES[name]
    lowered = mf.fuse(fn, target="sm_90a").lower(*specs)
    compiled = lowered.compile()
    assert [kernel.spill_store_bytes for kernel in compiled.resources] == [0] * len(compiled.binaries)
    assert compiled.attempts, "the first schedules spill with ptxas 13.0 to 13.5"
    assert "was chosen instead" in compiled.explain(verbose=True)

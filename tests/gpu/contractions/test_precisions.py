"""tf32, 3xtf32 and float8 on the GPU: exact where numbers are, else within twice cuBLAS's error; casts bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError
from mlirfuse.support.dtypes import rounded
from tests.support.contractions.precisions import FORMS, KINDS, PRECISE, PreciseProduct, ties
from tests.support.gpu.torch_arrays import to_numpy, to_torch

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

FLOAT8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
LARGE = [
    *(PreciseProduct(m, n, k, "nt", *kind) for m, n, k in ((256, 384, 1024), (128, 128, 16384)) for kind in KINDS),
    *(PreciseProduct(1000, 333, 500, form, *kind) for form in FORMS for kind in KINDS[:4]),
    *(PreciseProduct(2056, 2064, 512, "nt", *kind) for kind in KINDS),
]
"""Several tiles, splits, ragged ones, and tiles in several waves."""


def call(product: PreciseProduct, inputs: list[np.ndarray]) -> np.ndarray:
    return to_numpy(mf.fuse(product.fn)(*map(to_torch, inputs)))


@pytest.mark.parametrize("product", [*PRECISE, *LARGE], ids=str)
def test_integers_are_exact(product: PreciseProduct) -> None:
    inputs = product.integers()
    result = call(product, inputs)
    np.testing.assert_array_equal(result, product.exact(inputs).astype(result.dtype))


@pytest.mark.parametrize(("form", "rounding"), [("nt", "even"), ("nn", "away"), ("tt", "away")])
def test_operands_are_rounded_to_tf32_as_the_interpreter_does(form, rounding) -> None:
    """By the tensor memory accelerator for wgmma, and by conversions for mma.sync, which transposed operands take."""
    product = PreciseProduct(64, 32, 32, form, "float32", "float32", "tf32")
    inputs = [ties(shape) for shape in product.shapes]
    np.testing.assert_allclose(call(product, inputs), product.in_tf32(inputs, rounding), rtol=1e-6, atol=1000)


@pytest.mark.parametrize("form", ["nt", "nn"])
def test_infinities_and_nan_pass_through_tf32(form) -> None:
    product = PreciseProduct(64, 32, 32, form, "float32", "float32", "tf32")
    x, w = product.integers()
    x[:], w[:] = 0, 1
    x[3, 5], x[7, 9], x[8, 1] = np.inf, np.nan, -np.inf
    x[9, 2] = np.uint32(0x7FFFFFFF).view(np.float32)  # what the GPU itself makes
    result = call(product, [x, w])
    assert np.isposinf(result[3]).all()
    assert np.isneginf(result[8]).all()
    assert np.isnan(result[[7, 9]]).all()
    assert (np.delete(result, [3, 7, 8, 9], axis=0) == 0).all()


def _cublas(product: PreciseProduct) -> Callable[[Any, Any], Any]:
    """The peer that is asked for the same precision, for k contiguous in both operands."""
    if product.left == "float32":

        def multiply(x: Any, w: Any) -> Any:
            torch.backends.cuda.matmul.allow_tf32 = product.precision == "tf32"
            try:
                return x @ w.T
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False

        return multiply
    one, fast = torch.ones((), device="cuda"), product.precision == "fast_accum"
    return lambda x, w: torch._scaled_mm(x, w.T, one, one, out_dtype=torch.float32, use_fast_accum=fast)


@pytest.mark.parametrize("extents", [(256, 256, 512), (128, 128, 16384), (1024, 512, 4096)])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_random_data_within_twice_cublas_error(kind, extents) -> None:
    product = PreciseProduct(*extents, "nt", *kind)
    inputs = product.normal()
    x, w = map(to_torch, inputs)
    exact = torch.from_numpy(product.exact(inputs)).cuda()
    own, peer = (
        ((y.double() - exact).abs().max() / exact.abs().max()).item()
        for y in (mf.fuse(product.fn)(x, w), _cublas(product)(x, w))
    )
    assert own <= 2 * peer + 1e-7


@pytest.mark.parametrize("target", FLOAT8)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_casts_to_float8(source, target) -> None:
    """All numbers of 16 bits, random ones of more, and those between the largest and where rounding would end."""
    dtype = np.dtype(getattr(ml_dtypes, source, source))
    if dtype.itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    else:
        rng = np.random.default_rng(0)
        x = (rng.standard_normal(1 << 14) * np.exp2(rng.integers(-20, 20, 1 << 14))).astype(dtype)
        x[:4] = [448, 460, 57344, 60000]
        if dtype.kind == "f":
            x[4:8] = [np.inf, -np.inf, np.nan, 1e30]
    with np.errstate(over="ignore", invalid="ignore"):
        expected = rounded(x.astype(np.float32), np.dtype(target)).astype(np.float32)
    name = np.dtype(target).name
    result = to_numpy(mf.fuse(lambda x: x.astype(name))(to_torch(x)))
    assert result.dtype == target
    np.testing.assert_array_equal(result.astype(np.float32), expected)


@pytest.mark.parametrize("source", FLOAT8)
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64"])
def test_casts_from_float8(source, target) -> None:
    x = np.arange(256, dtype=np.uint8).view(source)
    result = to_numpy(mf.fuse(lambda x: x.astype(target))(to_torch(x)))
    np.testing.assert_array_equal(result.astype(np.float64), x.astype(np.float64))


def test_a_quantised_layer() -> None:
    """Scales are a prologue and an epilogue: rows are scaled to float8, multiplied, and scaled back."""

    def quantise(x):
        scale = mf.max(mf.abs(x.astype(mf.float32)), axis=-1, keepdims=True) / 448.0
        return (x.astype(mf.float32) / scale).astype(mf.float8_e4m3fn), scale

    def layer(x, w, scale_x, scale_w, bias):
        return (mf.matmul(x, w.mT) * scale_x * scale_w.mT + bias).astype(mf.bfloat16)

    torch.manual_seed(0)
    x, w, bias = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((96, 512), (256, 512), (256,)))
    (qx, sx), (qw, sw) = (mf.fuse(quantise)(t) for t in (x, w))
    assert qx.dtype == torch.float8_e4m3fn
    result = mf.fuse(layer)(qx, qw, sx, sw, bias)
    dequantised = (qx.double() * sx.double()) @ (qw.double() * sw.double()).T + bias.double()
    exact = x.double() @ w.double().T + bias.double()
    assert (result.double() - dequantised).abs().max() / exact.abs().max() < 2**-8
    assert (result.double() - exact).abs().max() / exact.abs().max() < 0.05


def test_views_of_float8() -> None:
    x = torch.randint(-3, 4, (64, 96), device="cuda").float().to(torch.float8_e4m3fn)
    w = torch.randint(-3, 4, (96, 80), device="cuda").float().to(torch.float8_e5m2)
    product = mf.fuse(lambda x, w: x @ w)
    for left, right in ((x, w), (x, w.T.contiguous().T), (x.T.contiguous().T, w), (x[:, ::2], w[::2])):
        assert torch.equal(product(left, right), left.float() @ right.float())
    out = torch.empty(64, 80, device="cuda", dtype=torch.float8_e5m2)
    small = (left := x[:, :8]), (right := w[:8])
    mf.fuse(lambda x, w: mf.matmul(x, w, dtype=mf.float8_e5m2))(*small, out=out)
    assert torch.equal(out.float(), (left.float() @ right.float()).to(torch.float8_e5m2).float())


def test_cupy_results_in_float8_are_refused() -> None:
    with pytest.raises(ArgumentError, match="CuPy has no arrays of float8_e4m3fn"):
        mf.fuse(lambda x: x.astype(mf.float8_e4m3fn))(cupy.ones((4, 8), cupy.float32))

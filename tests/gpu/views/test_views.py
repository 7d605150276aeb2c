"""Views, merged dimensions and odd rows on a GPU: results, strides, poisoned outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return cupy.asarray(np.random.default_rng(0).normal(size=shape).astype(dtype))


def test_a_transposed_result_is_a_view() -> None:
    fused = mf.fuse(lambda x: (mf.permute_dims(x * 2.0, (2, 0, 1)), mf.permute_dims(x, (1, 0, 2))))
    x = random(5, 6, 33)
    doubled, turned = fused(x)
    assert doubled.strides == (4, 4 * 6 * 33, 4 * 33)
    cupy.testing.assert_array_equal(doubled, (x * 2).transpose(2, 0, 1))
    assert turned.data.ptr == x.data.ptr
    cupy.testing.assert_array_equal(turned, x.transpose(1, 0, 2))


def test_a_transposed_result_goes_into_memory_laid_out_like_it() -> None:
    fused = mf.fuse(lambda x: mf.permute_dims(x * 2.0, (1, 0)))
    x, out = random(9, 33), cupy.full((9, 33), np.nan, np.float32).T
    assert fused(x, out=out) is out
    cupy.testing.assert_array_equal(out, x.T * 2)
    other = cupy.full((33, 9), np.nan, np.float32)
    assert fused(x, out=other) is other
    cupy.testing.assert_array_equal(other, x.T * 2)


def test_views_of_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    fused = mf.fuse(lambda x: (mf.permute_dims(x * 2.0, (1, 0)), mf.permute_dims(x, (1, 0)), mf.reshape(x, (3, 22))))
    x = torch.randn(6, 11, device="cuda")
    doubled, turned, flat = fused(x)
    assert torch.equal(doubled, x.T * 2)
    assert turned.data_ptr() == x.data_ptr()
    assert torch.equal(turned, x.T)
    assert torch.equal(flat, x.reshape(3, 22))


@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (2, 3, 129), (300, 17), (1000, 5141)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_runs_of_odd_length_are_written_to_the_end_and_no_further(shape: tuple[int, ...], dtype: Any) -> None:
    fused = mf.fuse(lambda x, y: mf.where(x > y, x * 2.0, y))
    size = int(np.prod(shape))
    x, y = random(*shape, dtype=dtype), random(*shape[::-1], dtype=dtype).reshape(shape)
    memory = cupy.full(size + 64, np.nan, dtype)
    out = memory[:size].reshape(shape)
    fused(x, y, out=out)
    cupy.testing.assert_array_equal(out, cupy.where(x > y, x * dtype(2), y))
    assert bool(cupy.isnan(memory[size:]).all())


@pytest.mark.parametrize("shape", [(4096, 4, 49, 49), (3, 1, 49, 49), (640, 3, 35, 35), (1000, 2, 9, 49)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_softmax_of_odd_rows(shape: tuple[int, ...], dtype: Any) -> None:
    """Attention within windows: scores with a bias that all windows share, whose rows are no whole vectors."""

    def softmax(x: Any, bias: Any) -> Any:
        h = x.astype(mf.float32) + bias
        e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
        return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)

    x, bias = random(*shape, dtype=dtype), random(*shape[1:])
    memory = cupy.full(x.size + 64, np.nan, dtype)
    mf.fuse(softmax)(x, bias, out=memory[: x.size].reshape(shape))
    h = x.get().astype(np.float64) + bias.get()
    e = np.exp(h - h.max(-1, keepdims=True))
    tolerance = 3e-6 if dtype is np.float32 else 1e-3
    exact = e / e.sum(-1, keepdims=True)
    np.testing.assert_allclose(memory[: x.size].reshape(shape).get(), exact, rtol=tolerance, atol=1e-7)
    assert bool(cupy.isnan(memory[x.size :]).all())


def test_batches_are_rows() -> None:
    def softmax(x: Any) -> Any:
        e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
        return e / mf.sum(e, axis=-1, keepdims=True)

    fused = mf.fuse(softmax)
    for shape in ((3, 5, 1000), (4, 2, 3, 1000)):
        x = random(*shape)
        exact = np.exp(x.get().astype(np.float64))
        exact /= exact.sum(-1, keepdims=True)
        np.testing.assert_allclose(fused(x).get(), exact, rtol=2e-6)
    assert len(fused._compiled) == 2


@pytest.mark.parametrize("shape", [(1, 7), (5, 91), (33, 7, 11), (4099, 1023)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_all_of_odd_rows_is_reduced_as_one_row(shape: tuple[int, ...], dtype: Any) -> None:
    def statistics(x: Any, y: Any, xp: Any = mf) -> Any:
        difference = x.astype(xp.float32) - y.astype(xp.float32)
        return xp.mean(difference * difference), xp.max(x), x * xp.mean(difference).astype(x.dtype)

    x, y = random(*shape, dtype=dtype), random(*shape[::-1], dtype=dtype).reshape(shape)
    expected = statistics(cupy.asnumpy(x), cupy.asnumpy(y), np)
    for result, right in zip(mf.fuse(statistics)(x, y), expected, strict=True):
        np.testing.assert_allclose(cupy.asnumpy(result), right, rtol=2e-3 if dtype == np.float16 else 2e-5, atol=1e-6)

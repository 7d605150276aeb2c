"""Arguments and `out=` that are not C-contiguous, on a GPU: reversed, offset, transposed, repeated (issue 23)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError
from tests.support.views.strided import VIEWS

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "bool"]


def random(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return cupy.asarray(np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 7, shape).astype(dtype))


def same(actual: Any, expected: Any, tolerance: float = 0) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(cupy.asnumpy(actual).astype(np.float64), expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_and_row_and_column_sums(kind: str, dtype: str) -> None:
    def program(x: Any) -> Any:
        y = mf.astype(x, mf.float64)
        return y + 1.0, mf.sum(y, axis=-1), mf.sum(y, axis=0)

    fused = mf.fuse(program)
    for shape in ((6, 24), (300, 33), (1, 129), (257, 1)):
        x = VIEWS[kind](lambda s: random(s, dtype), shape)
        y = cupy.asnumpy(x).astype(np.float64)
        for actual, expected in zip(fused(x), (y + 1, y.sum(-1), y.sum(0)), strict=True):
            same(actual, expected)


@pytest.mark.parametrize(("kind", "other"), [*((k, "contiguous") for k in VIEWS), *((k, k) for k in VIEWS)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products(kind: str, other: str, dtype: str) -> None:
    """No tensor map describes a negative stride, or one of 0: other copies take such operands."""
    shapes = (256, 512), (512, 384)
    views = VIEWS | {"contiguous": lambda make, s: make(s)}
    x, w = (views[name](lambda s: random(s, dtype), shape) for name, shape in zip((kind, other), shapes, strict=True))
    exact = cupy.asnumpy(x).astype(np.float64) @ cupy.asnumpy(w).astype(np.float64)
    same(mf.fuse(lambda x, w: x @ w)(x, w), exact, 2e-3)
    if other == "contiguous":
        residual = VIEWS[kind](lambda s: random(s, dtype), exact.shape)
        contiguous = cupy.ascontiguousarray(x)
        added = exact + cupy.asnumpy(residual)
        same(mf.fuse(lambda x, w, r: x @ w + r)(contiguous, w, residual), added, 2e-3)


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("target", [(3, 16, 2, 4), (3, 4, 4, 8), (-1,), (-1, 8), (4, -1)])
def test_reshapes(kind: str, target: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        h = mf.reshape(x, target)
        return h * 2.0, mf.sum(h, axis=0), h

    x = VIEWS[kind](random, (3, 16, 8))
    h = cupy.asnumpy(x).reshape(target)
    for actual, expected in zip(mf.fuse(program)(x), (h * 2, h.sum(0), h), strict=True):
        same(actual, expected)


def test_heads_of_a_slice_of_qkv() -> None:
    def scores(q: Any, k: Any) -> Any:
        q, k = (mf.permute_dims(mf.reshape(x, (-1, 4, 64)), (1, 0, 2)) for x in (q, k))
        return q @ mf.matrix_transpose(k)

    fused, qkv = mf.fuse(scores), random((300, 768), "float16")
    for q, k in (
        (qkv[:, :256], qkv[:, 256:512]),
        (qkv[::-1, :256], qkv[:, 511:255:-1]),
        (qkv[::2, 1:257], qkv[5:, 3:259]),
    ):
        a, b = (cupy.asnumpy(x).astype(np.float64).reshape(-1, 4, 64).transpose(1, 0, 2) for x in (q, k))
        same(fused(q, k), a @ b.swapaxes(-1, -2), 2e-3)


@pytest.mark.parametrize("kind", [kind for kind in VIEWS if kind != "one row for all"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "bool"])
def test_results_go_into_arrays_of_any_strides(kind: str, dtype: str) -> None:
    """What lies between the elements of `out` stays as it was."""
    memory = []

    def make(shape: tuple[int, ...]) -> Any:
        memory.append(cupy.full(shape, 1, dtype))
        return memory[-1]

    fused = mf.fuse(lambda x: mf.logical_not(x) if dtype == "bool" else x * 2.0)
    x, out = random((40, 33), dtype), VIEWS[kind](make, (40, 33))
    stream = cupy.cuda.Stream()
    for again, given in product(range(2), (None, stream)):
        memory[0].fill(1)
        cupy.cuda.Device().synchronize()
        assert fused(x[::-1] if again else x, out=out, stream=given) is out
        cupy.cuda.Device().synchronize()
        host = cupy.asnumpy(x[::-1] if again else x)
        same(out, ~host if dtype == "bool" else host * 2)
        written = cupy.zeros(memory[0].shape, bool)
        VIEWS[kind](lambda shape, written=written: written, (40, 33))[...] = True
        assert bool((memory[0][~written] == 1).all())


def test_overlap_is_found_where_elements_are_shared_and_only_there() -> None:
    fused, memory = mf.fuse(lambda x: x * 2.0), random((16, 64))
    left, right = memory[:, :32], memory[:, 32:]
    expected = cupy.asnumpy(left) * 2
    fused(left, out=right[::-1])
    same(right[::-1], expected)
    for out in (memory[:, 31:63], memory[::-1, :32], memory[::-1, 32::-1][:, :32]):
        with pytest.raises(ArgumentError, match="overlaps an argument"):
            fused(left, out=out)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    fused = mf.fuse(lambda x: (mf.sum(mf.reshape(x, (-1, 4, 16)), axis=1), mf.reshape(x, (-1,)) * 2.0))
    qkv = torch.arange(33 * 192, device="cuda", dtype=torch.float32).reshape(33, 192) % 7
    for x in (qkv[:, :64], qkv[:, 65:129], qkv[::2, 64:128], qkv[:, ::3], qkv[:1, :64].expand(33, 64)):
        total, doubled = fused(x)
        assert torch.equal(total, x.reshape(-1, 4, 16).sum(1))
        assert torch.equal(doubled, x.reshape(-1) * 2)
    out = torch.zeros(64, 33, device="cuda").T
    mf.fuse(lambda x: x * 2.0)(qkv[:, :64], out=out)
    assert torch.equal(out, qkv[:, :64] * 2)


@pytest.mark.parametrize("kind", ["torch", "cupy", "int"])
def test_copies_into_out_run_on_the_stream_that_is_given(kind: str) -> None:
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    given = {"torch": stream, "cupy": cupy.cuda.Stream.from_external(stream), "int": stream.cuda_stream}[kind]
    fused, x = mf.fuse(lambda x: x * 2.0), torch.zeros(512, 1024, device="cuda")
    out = torch.empty(1024, 512, device="cuda").T
    fused(x, out=out)  # compiles
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # about 10 ms, which work on another stream would overtake
        x.fill_(3)
    fused(x, out=out, stream=given)
    stream.synchronize()
    assert bool((out == 6).all())

"""Matrix products, and what is computed before and behind them in the same kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlirfuse as mf
from tests.ptx_digest.cases import FLOAT8_KINDS, Case, Row, sample, tensors

PRECISIONS: dict[str, tuple[str, str, str | None]] = {
    "float16": ("float16", "float16", None),
    "bfloat16": ("bfloat16", "bfloat16", None),
    "float32": ("float32", "float32", None),
    "float64": ("float64", "float64", None),
    "int8": ("int8", "int8", None),
    "int32": ("int32", "int32", None),
    "tf32": ("float32", "float32", "tf32"),
    "3xtf32": ("float32", "float32", "3xtf32"),
    "e4m3": ("float8_e4m3fn", "float8_e4m3fn", None),
    "e5m2_e4m3": ("float8_e5m2", "float8_e4m3fn", None),
    "e4m3_fast": ("float8_e4m3fn", "float8_e4m3fn", "fast_accum"),
}
"""Dtypes of the operands, and the precision that is asked for."""

SIZES = (
    (4096, 4096, 4096),
    (1024, 2048, 50304),
    (16, 4096, 14336),
    (72, 2048, 4096),
    (64, 128, 131072),
    (128, 512, 16384),
    (777, 3072, 3072),
    (1000, 1544, 5000),
    (33, 72, 40),
    (1, 4096, 4096),
    (4096, 1, 4096),
    (None, 4096, 4096),
)
"""M, N and K: large, small M, split along K, ragged, vectors, and M known at run time."""


def gelu(x, w, b):
    h = mf.matmul(x, w.T, dtype=mf.float32) + b
    return (0.5 * h * (1 + mf.erf(h * 0.7071067811865476))).astype(x.dtype)


def residual(x, w, r):
    return (mf.matmul(x, w.T, dtype=mf.float32) + r).astype(x.dtype)


def silu_gate(x, w, r):
    h = mf.matmul(x, w.T, dtype=mf.float32)
    return (h * mf.sigmoid(h) * r).astype(x.dtype)


def scaled_rows(x, w, s):
    return (mf.matmul(x, w.T, dtype=mf.float32) * s[:, None]).astype(x.dtype)


def two_results(x, w):
    y = mf.matmul(x, w.T, dtype=mf.float32)
    return y, mf.maximum(y, 0).astype(x.dtype)


def transposed_result(x, w, b):
    return (mf.matmul(x, w.T, dtype=mf.float32) + b).T


def row_sums(x, w):
    y = x @ w.T
    return y, mf.sum(y.astype(mf.float32) ** 2, axis=-1)


def result_column_sums(x, w):
    return mf.sum(mf.matmul(x, w.T, dtype=mf.float32), axis=0)


def product_softmax(x, w):
    h = mf.matmul(x, w.T, dtype=mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


def cast(x, w):
    return x.astype(mf.bfloat16) @ w.T.astype(mf.bfloat16)


def activated(x, w):
    h = x.astype(mf.float32)
    return (h * mf.sigmoid(h)).astype(x.dtype) @ w.T


def scaled_along_k(x, w, k):
    return (x * k) @ w.T


def both(x, w, k):
    return (x * 2) @ mf.maximum(w * k, 0).T


def dequantised(x, q, b):
    return x @ (q.astype(x.dtype) * b[:, None]).T


def dequantised_float8(x, q8, b):
    return x @ (q8.astype(x.dtype) * b[:, None]).T


def scaled_float8(e, q8, s, b):
    return (mf.matmul(e, q8.T) * s[:, None] * b).astype(mf.bfloat16)


def norm_product(x, w, k):
    h = x.astype(mf.float32)
    return (h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-6) * k).astype(x.dtype) @ w.T


EPILOGUES = (
    *(gelu, residual, silu_gate, scaled_rows, two_results, transposed_result, row_sums, result_column_sums),
    product_softmax,
)
PROLOGUES = (cast, activated, scaled_along_k, both, dequantised, dequantised_float8, scaled_float8, norm_product)


def cases() -> Iterator[Case]:
    """The cases of this module."""
    parameters = {"form": ("nt", "nn", "tn", "tt"), "precision": tuple(PRECISIONS), "size": SIZES}
    yield from sample("product", parameters, _product, _runs, _float8)
    sizes = (
        (2048, 2048, 4096),
        (16, 4096, 4096),
        (128, 256, 65536),
        (777, 3072, 3072),
        (33, 72, 40),
        (None, 1024, 1024),
    )
    parameters = {"function": EPILOGUES, "dtype": ("float16", "bfloat16", "float32"), "size": sizes}
    yield from sample("epilogue", parameters, _around)
    parameters = {"function": PROLOGUES, "dtype": ("float16", "bfloat16", "float32"), "size": sizes}
    yield from sample("prologue", parameters, _around, _runs, _float8)
    parameters = {
        "function": (attention, mlp, two_products, batched, gradients),
        "dtype": ("float16", "bfloat16", "float32"),
    }
    yield from sample("chain", {**parameters, "rows": (64, 1024, 1000)}, _chain)


def _runs(row: Row) -> bool:
    """Whether the architecture has what a precision or a function needs."""
    return not _float8(row) or row.get("architecture", "hopper") in FLOAT8_KINDS


def _float8(row: Row) -> bool:
    return row.get("precision", "")[:1] == "e" or row.get("function") in (dequantised_float8, scaled_float8)


def _product(row: Row) -> tuple[Any, ...]:
    left, right, precision = PRECISIONS[row["precision"]]
    m, n, k = row["size"]
    m = "m" if m is None else m

    def product(x, w):
        x = x.mT if row["form"][0] == "t" else x
        w = w.mT if row["form"][1] == "t" else w
        return mf.matmul(x, w, precision=precision)

    x = (m, k) if row["form"][0] == "n" else (k, m)
    w = (k, n) if row["form"][1] == "n" else (n, k)
    return product, [*tensors(left, x), *tensors(right, w)], {}


def _around(row: Row) -> tuple[Callable[..., Any], list[mf.TensorSpec], dict[str, Any]]:
    """A function of x (M, K), w (N, K), and others whose names say what they are."""
    m, n, k = row["size"]
    m = "m" if m is None else m
    shapes = {
        "x": (m, k),
        "e": (m, k),
        "w": (n, k),
        "q": (n, k),
        "q8": (n, k),
        "r": (m, n),
        "s": (m,),
        "b": (n,),
        "k": (k,),
    }
    dtypes = {"q": "int8", "q8": "float8_e4m3fn", "e": "float8_e5m2"}
    fn = row["function"]
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return fn, [mf.TensorSpec(shapes[name], dtypes.get(name, row["dtype"])) for name in names], {}


def attention(q, k, v):
    s = (q @ k.mT).astype(mf.float32) * 0.125
    p = mf.exp(s - mf.max(s, axis=-1, keepdims=True))
    return (p / mf.sum(p, axis=-1, keepdims=True)).astype(q.dtype) @ v


def mlp(x, g, v, b, w):
    h = x.astype(mf.float32)
    centred = h - mf.mean(h, axis=-1, keepdims=True)
    n = (centred * mf.rsqrt(mf.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * g).astype(x.dtype)
    return x + mf.maximum(n @ v.T + b, 0) @ w.T


def two_products(x, w, v):
    return (x @ w.T) @ v.T


def batched(x, w):
    return x @ w.mT


def gradients(dy, x, w):
    return dy @ w, dy.T @ x, mf.sum(dy.astype(mf.float32), axis=0)


def _chain(row: Row) -> tuple[Any, ...]:
    n = row["rows"]
    shapes: dict[Any, list[tuple[Any, ...]]] = {
        attention: [(8, n, 64), (8, 512, 64), (8, 512, 64)],
        mlp: [(n, 512), (512,), (1024, 512), (1024,), (512, 1024)],
        two_products: [(n, 512), (256, 512), (384, 256)],
        batched: [(2, 6, n, 64), (6, 128, 64)],
        gradients: [(n, 768), (n, 512), (768, 512)],
    }
    return row["function"], tensors(row["dtype"], *shapes[row["function"]]), {}

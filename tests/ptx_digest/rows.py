"""Kernels that reduce rows, kernels that reduce the whole grid, and both at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import mlirfuse as mf
from tests.ptx_digest.cases import Case, Row, sample, tensors


def softmax(x):
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


def log_softmax(x):
    h = x - mf.max(x, axis=-1, keepdims=True)
    return h - mf.log(mf.sum(mf.exp(h), axis=-1, keepdims=True))


def layer_norm(x, y, w, b):
    h = (x + y).astype(mf.float32)
    centred = h - mf.mean(h, axis=-1, keepdims=True)
    rstd = mf.rsqrt(mf.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
    return (centred * rstd * w + b).astype(x.dtype)


def add_rms_norm(x, y, w):
    s = x + y
    h = s.astype(mf.float32)
    return s, (h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-6) * w).astype(x.dtype)


def row_sum(x):
    return mf.sum(x, axis=-1)


def extrema(x):
    return mf.max(x, axis=-1), mf.min(x, axis=-1), mf.max(mf.abs(x), axis=-1)


def normalised_rows(x):
    return x * (1 / mf.maximum(mf.std(x, axis=-1, keepdims=True), 1e-3)), mf.var(x, axis=-1)


def bias_gelu(x, b):
    h = x.astype(mf.float32) + b
    return (0.5 * h * (1 + mf.erf(h * 0.7071067811865476))).astype(x.dtype)


def quantised(x):
    h = x.astype(mf.float32)
    scale = mf.max(mf.abs(h), axis=-1, keepdims=True) / 127.0
    return mf.round(h / scale).astype(mf.int8), scale


def column_sums(x, w):
    h = x.astype(mf.float32) * w
    return mf.sum(h, axis=0), mf.mean(h * h, axis=0).astype(x.dtype)


def everything(x, w):
    return mf.sum(x * w), mf.mean(mf.abs(x))


def batch_norm(x, w):
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=0)
    variance = mf.mean((h - mean) ** 2, axis=0)
    return ((h - mean) * mf.rsqrt(variance + 0.1) * w).astype(x.dtype), mean, variance


def norm_backward(dy, x, w, rstd):
    g, n = dy.astype(mf.float32), x.astype(mf.float32) * rstd
    gw = g * w
    dx = (gw - n * mf.mean(gw * n, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype)


def gelu_backward(dy, x, b):
    dx = dy.astype(mf.float32) * mf.exp(-0.5 * (x.astype(mf.float32) + b) ** 2)
    return dx.astype(x.dtype), mf.sum(dx, axis=0).astype(b.dtype)


def softmax_backward(dy, y):
    dx = y * (dy - mf.sum(dy * y, axis=-1, keepdims=True))
    return dx, mf.sum(dx, axis=0)


VECTORS = ("w", "b")
"""Names of parameters that hold a number a column."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
ROWS = (softmax, log_softmax, layer_norm, add_rms_norm, row_sum, extrema, normalised_rows, bias_gelu, quantised)
GRIDS = (column_sums, everything, batch_norm, norm_backward, gelu_backward, softmax_backward)
COUNTS = (None, 3, 8192)
"""Rows."""


def second_stage(kind: str) -> Mapping[str, Any]:
    """The option of `mf.fuse` that names the second stage of a grid reduction.

    Keep the keys when the option or its values are renamed: they are in the cases' names.
    """
    values = {
        "grid_sync": "grid_sync",
        "last_block": "last_block",
        "second_kernel": "second_kernel",
        "atomics": "atomics",
    }
    return {} if kind == "chosen" else {"grid_reduction": values[kind]}


def cases() -> Iterator[Case]:
    """The cases of this module."""
    columns = (1, 7, 100, 768, 4096, 4097, 5140, 16384, 65536, 131072)
    parameters = {"function": ROWS, "dtype": FLOATS, "columns": columns, "rows": COUNTS}
    yield from sample("rows", parameters, lambda row: (*_arguments(row), {}))
    columns = (3, 384, 1152, 4096, 5140, 65536, 200_000)
    parameters = {"function": GRIDS, "dtype": FLOATS[:3], "columns": columns, "rows": (None, 64, 32768)}
    yield from sample("grid", parameters, lambda row: (*_arguments(row), {}))
    stages = ("grid_sync", "last_block", "second_kernel", "atomics")
    parameters = {
        "function": (sum_of_columns, norm_backward),
        "stage": stages,
        "dtype": FLOATS[1:3],
        "columns": (768, 4096),
    }
    yield from sample("stage", parameters, _staged)
    parameters = {"mix_order": ("fused", "split"), "columns": (1024, 5140), "dtype": FLOATS[:3]}
    yield from sample("mix_order", parameters, _mixed)


def sum_of_columns(x):
    return mf.sum(x.astype(mf.float32), axis=0)


def _arguments(row: Row) -> tuple[Callable[..., Any], list[mf.TensorSpec]]:
    fn, rows = row["function"], "rows" if row.get("rows") is None else row["rows"]
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    shapes = {"rstd": (rows, 1), **dict.fromkeys(VECTORS, (row["columns"],))}
    return fn, tensors(row["dtype"], *(shapes.get(name, (rows, row["columns"])) for name in names))


def _staged(row: Row) -> tuple[Any, ...]:
    fn = sum_and_dx if row["stage"] == "atomics" and row["function"] is norm_backward else row["function"]
    return (*_arguments({**row, "function": fn}), second_stage(row["stage"]))


def sum_and_dx(dy, x, w, rstd):
    """Sums that stay float32, as atomics need."""
    g, n = dy.astype(mf.float32), x.astype(mf.float32) * rstd
    gw = g * w
    dx = (gw - n * mf.mean(gw * n, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0)


def _mixed(row: Row) -> tuple[Any, ...]:
    return (*_arguments({**row, "function": norm_backward}), {"mix_order": row["mix_order"]})

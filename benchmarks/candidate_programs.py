"""Programs of one kernel whose candidates `candidates.py` measures: every family, at sizes of every aspect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mlirfuse as mf


@dataclass(frozen=True)
class Program:
    """A function of arrays, and the shapes and dtypes of its arguments."""

    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        arguments = (f"{'x'.join(map(str, s))} {d}" for s, d in zip(self.shapes, self.dtypes, strict=True))
        return f"{self.name} {', '.join(arguments)}"


def softmax(x: Any) -> Any:
    """Of each row."""
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    """Of each row, with weights and biases."""
    centred = x - mf.mean(x, axis=-1, keepdims=True)
    return centred * mf.rsqrt(mf.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * w + b


def rms_norm(x: Any, w: Any) -> Any:
    """Of each row, with weights."""
    return x * mf.rsqrt(mf.mean(x * x, axis=-1, keepdims=True) + 1e-5) * w


def centred_columns(x: Any) -> Any:
    """Columns less their means."""
    return x - mf.mean(x, axis=0)


def column_softmax(x: Any) -> Any:
    """Of each column."""
    e = mf.exp(x - mf.max(x, axis=0))
    return e / mf.sum(e, axis=0)


def normalised(x: Any) -> Any:
    """All numbers, divided by their norm."""
    return x * mf.rsqrt(mf.sum(x * x))


def over(axes: Any, reduce: Callable[..., Any] = mf.sum) -> Callable[[Any], Any]:
    """A reduction over some axes."""

    def reduced(x: Any) -> Any:
        return reduce(x, axis=axes)

    return reduced


def standardised(axes: Any) -> Callable[[Any], Any]:
    """Numbers less their mean over some axes, divided by their deviation."""

    def standard(x: Any) -> Any:
        centred = x - mf.mean(x, axis=axes, keepdims=True)
        return centred * mf.rsqrt(mf.mean(centred * centred, axis=axes, keepdims=True) + 1e-5)

    return standard


def rms_backward(dy: Any, x: Any, w: Any) -> Any:
    """The gradients of `rms_norm` by its rows and its weights."""
    rstd = mf.rsqrt(mf.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    n = x * rstd
    g = dy * w
    return (g - n * mf.mean(g * n, axis=-1, keepdims=True)) * rstd, mf.sum(dy * n, axis=0)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    """A step of Adam: parameters and both moments."""
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (mf.sqrt(v) + 1e-8), m, v


def gelu(x: Any) -> Any:
    """With the error function."""
    return 0.5 * x * (1 + mf.erf(x * 0.7071067811865476))


def swiglu(a: Any, b: Any) -> Any:
    """A gate of two arrays."""
    return a / (1 + mf.exp(-a)) * b


ROWS = (
    (8192, 768),
    (8192, 4096),
    (4096, 5140),
    (8192, 1000),
    (131072, 64),
    (131072, 200),
    (2048, 16384),
    (512, 65536),
    (64, 131072),
    (32, 4096),
)
COLUMNS = ((50000, 1024), (4096, 4096), (512, 16384), (65536, 64), (1 << 20, 16), (128, 65536), (100, 100))


def programs() -> Iterator[Program]:
    """All programs; their bytes lie between 64 KB and 512 MB."""
    for rows, columns in ROWS:
        for dtype in ("float16", "float32"):
            yield Program("softmax", softmax, ((rows, columns),), (dtype,))
            yield Program("layer_norm", layer_norm, ((rows, columns), (columns,), (columns,)), (dtype,) * 3)
            yield Program("row sums", over(-1), ((rows, columns),), (dtype,))
            yield Program(
                "rms_norm backward", rms_backward, ((rows, columns), (rows, columns), (columns,)), (dtype,) * 3
            )
        yield Program("rms_norm", rms_norm, ((rows, columns), (columns,)), ("bfloat16",) * 2)
    for rows, columns in COLUMNS:
        for dtype in ("float16", "float32"):
            yield Program("column sums", over(0), ((rows, columns),), (dtype,))
            yield Program("column maxima", over(0, mf.max), ((rows, columns),), (dtype,))
            yield Program("centred columns", centred_columns, ((rows, columns),), (dtype,))
            yield Program("column softmax", column_softmax, ((rows, columns),), (dtype,))
    for n in (1 << 16, 1 << 20, 1 << 24, 1 << 26):
        yield Program("sum", over(None), ((n,),), ("float32",))
        yield Program("normalised", normalised, ((n,),), ("float32",))
    for shape, axes in (
        ((64, 1024, 1024), 1),
        ((64, 512, 56, 56), (0, 2, 3)),
        ((64, 56, 56, 256), (0, 1, 2)),
        ((64, 56, 56, 256), (1, 2)),
        ((32, 128, 16, 256), (0, 2)),
        ((32, 128, 16, 256), (1, 3)),
        ((16, 64, 64, 64, 8), (1, 3)),
    ):
        for dtype in ("float16", "float32"):
            yield Program(f"sum over {axes}", over(axes), (shape,), (dtype,))
            yield Program(f"standardised over {axes}", standardised(axes), (shape,), (dtype,))
    for n in (1 << 14, 1 << 18, 1 << 22, 1 << 26):
        for dtype in ("float16", "float32"):
            yield Program("gelu", gelu, ((n,),), (dtype,))
            yield Program("swiglu", swiglu, ((n,), (n,)), (dtype,) * 2)
            yield Program("adam", adam, ((n,),) * 4, (dtype,) * 4)
    for shape in ((8192, 4096), (4096, 5140), (1 << 20, 3), (3, 1 << 20), (1 << 20, 64)):
        for dtype in ("float16", "float32"):
            yield Program("transposed sum", lambda x, y: x + y.T, (shape, shape[::-1]), (dtype,) * 2)
            yield Program("row and column", lambda x, r, c: x * r + c, (shape, (shape[0], 1), shape[1:]), (dtype,) * 3)
    for m, n, k in (
        (4096, 4096, 4096), (8192, 1024, 4096), (16, 4096, 14336), (1, 14336, 4096),
        (200, 28672, 8192), (2112, 2112, 2048), (512, 512, 65536), (128, 512, 16384),
        (1024, 5632, 2048), (64, 2112, 4096), (768, 3072, 768), (33, 100, 1000),
    ):  # fmt: skip
        yield Program("x @ w.T", lambda x, w: x @ w.T, ((m, k), (n, k)), ("bfloat16",) * 2)
        yield Program("x @ w", lambda x, w: x @ w, ((m, k), (k, n)), ("bfloat16",) * 2)
        yield Program("x.T @ w", lambda x, w: x.T @ w, ((k, m), (k, n)), ("float16",) * 2)

"""Programs of one kernel whose candidates `candidates.py` measures: every family, at sizes of every aspect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mlirfuse as mf


@dataclass(frozen=True)
class Program:
    """A function of arrays, and the shapes, dtypes and values (`Argument.values`; normal if empty) of its arguments."""

    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    values: tuple[str | int, ...] = ()

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


def adamw(p: Any, g: Any, m: Any, v: Any) -> Any:
    """A step of AdamW with float32 states and a gradient of half precision; and the weights' copy in half precision."""
    h = mf.astype(g, mf.float32)
    m, v = 0.9 * m + 0.1 * h, 0.999 * v + 0.001 * h * h
    p = p * 0.999 - 1e-3 * m / (mf.sqrt(mf.abs(v)) + 1e-8)
    return p, mf.astype(p, mf.bfloat16), m, v


def lion(p: Any, g: Any, m: Any) -> Any:
    """A step of Lion."""
    h = mf.astype(g, mf.float32)
    return p * 0.999 - 1e-3 * mf.sign(0.9 * m + 0.1 * h), 0.99 * m + 0.01 * h


def accumulate(total: Any, g: Any) -> Any:
    """A gradient of half precision added to a sum of full."""
    return total + mf.astype(g, mf.float32) * 0.125


def dequantised(q: Any, scale: Any) -> Any:
    """Bytes by the scale of their row."""
    return mf.astype(mf.astype(q, mf.float32) * scale, mf.bfloat16)


def mixed_types(x: Any, y: Any, z: Any) -> Any:
    """Three widths in, two out."""
    h = mf.astype(x, mf.float32) * y + mf.astype(z, mf.float32)
    return h, mf.astype(h, mf.bfloat16)


def gates(i: Any, f: Any, g: Any, c: Any) -> Any:
    """Of a recurrent cell: special functions of four inputs."""
    c = mf.sigmoid(f) * c + mf.sigmoid(i) * mf.tanh(g)
    return c, mf.tanh(c)


def many_inputs(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Six arrays in, two out."""
    return a * b + c * d, e * f - a


def focal(x: Any, t: Any) -> Any:
    """A loss of each row, of two special functions and a division an element."""
    p = mf.sigmoid(mf.where(mf.astype(t, mf.float32) > 0, mf.astype(x, mf.float32), -mf.astype(x, mf.float32)))
    return mf.sum((1.0 - p) * (1.0 - p) * mf.log(p + 1e-6), axis=-1)


def bytes_by_row(x: Any) -> Any:
    """Quantised to bytes by each row's maximum, after a gate."""
    h = mf.astype(x, mf.float32)
    h = h * mf.sigmoid(1.702 * h)
    scale = mf.max(mf.abs(h), axis=-1, keepdims=True) / 127.0 + 1e-6
    return mf.astype(mf.clip(mf.round(h / scale), -127.0, 127.0), mf.int8), scale


def streams() -> Iterator[Program]:
    """Kernels that stream many arrays, arrays of mixed types, or with much arithmetic."""
    f, h, b = "float32", "bfloat16", "int8"
    for shape in ((14336, 4096), (768, 768)):
        yield Program("adamw", adamw, (shape,) * 4, (f, h, f, f))
        yield Program("lion", lion, (shape,) * 3, (f, h, f))
        yield Program("accumulate", accumulate, (shape,) * 2, (f, h))
        yield Program("dequantised", dequantised, (shape, (shape[0], 1)), (b, f))
        yield Program("mixed_types", mixed_types, (shape,) * 3, (h, f, b))
        yield Program("gates", gates, (shape,) * 4, (f,) * 4)
        yield Program("gates", gates, (shape,) * 4, (h,) * 4)
        yield Program("many_inputs", many_inputs, (shape,) * 6, (f,) * 6)
        yield Program("bytes_by_row", bytes_by_row, (shape,), (h,))
    yield Program("focal", focal, ((1000000, 80),) * 2, (h, b))


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


def thin_products() -> Iterator[Program]:
    """Products with few steps along k, whose time is that of their operands and results."""
    for m, n, k in (
        (802816, 256, 64), (802816, 64, 64), (802816, 96, 16), (50176, 240, 40), (11552, 816, 136), (25088, 256, 64),
        (200704, 64, 256), (65536, 512, 128),
    ):  # fmt: skip
        yield Program("thin x @ w.T", lambda x, w: x @ w.T, ((m, k), (n, k)), ("float16",) * 2)
    for p, q in ((32, 32768), (64, 262144)):
        yield Program("thin w.T @ x", lambda w, x: w.T @ x, ((p, p), (p, q)), ("bfloat16",) * 2)


def programs() -> Iterator[Program]:
    """All programs; their bytes lie between 64 KB and 512 MB."""
    yield from thin_products()
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
    yield from streams()
    for m, n, k in (
        (4096, 4096, 4096), (8192, 1024, 4096), (16, 4096, 14336), (1, 14336, 4096),
        (200, 28672, 8192), (2112, 2112, 2048), (512, 512, 65536), (128, 512, 16384),
        (1024, 5632, 2048), (64, 2112, 4096), (768, 3072, 768), (33, 100, 1000),
    ):  # fmt: skip
        yield Program("x @ w.T", lambda x, w: x @ w.T, ((m, k), (n, k)), ("bfloat16",) * 2)
        yield Program("x @ w", lambda x, w: x @ w, ((m, k), (k, n)), ("bfloat16",) * 2)
        yield Program("x.T @ w", lambda x, w: x.T @ w, ((k, m), (k, n)), ("float16",) * 2)

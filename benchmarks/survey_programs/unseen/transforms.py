"""Transforms of signals, images and volumes, their quantisation, statistics and small linear systems."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from math import cos, pi, sqrt
from typing import Any

from survey_programs.formulas import wide


def butterflies(xp: Any, re: Any, im: Any, wr: Any, wi: Any) -> Any:
    """A stage of a Fourier transform of radix 4, with its power."""
    tr, ti = re * wr - im * wi, re * wi + im * wr
    a, b, c, d = (tr[..., k::4] for k in range(4))
    e, f, g, h = (ti[..., k::4] for k in range(4))
    real = xp.concat([a + b + c + d, a + f - c - h, a - b + c - d, a - f - c + h], axis=-1)
    imaginary = xp.concat([e + f + g + h, e - b - g + d, e - f + g - h, e + b - g - d], axis=-1)
    return real, imaginary, xp.sum(real * real + imaginary * imaginary, axis=1)


def _haar(x: Any) -> list[Any]:
    a, b, c, d = x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]
    return [(a + b + c + d) * 0.5, (a - b + c - d) * 0.5, (a + b - c - d) * 0.5, (a - b - c + d) * 0.5]


def _quadrants(xp: Any, low: Any, right: Any, below: Any, across: Any) -> Any:
    return xp.concat([xp.concat([low, right], axis=2), xp.concat([below, across], axis=2)], axis=1)


def haar_levels(xp: Any, x: Any) -> Any:
    """Two levels in both directions, the finer details shrunk."""
    low, *details = _haar(wide(xp, x))
    shrunk = [xp.sign(each) * xp.maximum(xp.abs(each) - 0.25, 0.0) for each in details]
    return xp.astype(_quadrants(xp, _quadrants(xp, *_haar(low)), *shrunk), xp.float16)


def _shifted_pair(xp: Any, x: Any, by: int, axis: int) -> Any:
    """The sum of x moved forwards and backwards, zeros where it is left."""
    first, last = ((slice(None),) * axis + (part,) for part in (slice(None, by), slice(by, None)))
    start, end = ((slice(None),) * axis + (part,) for part in (slice(None, -by), slice(-by, None)))
    forwards = xp.concat([xp.zeros_like(x[first]), x[start]], axis=axis)
    return forwards + xp.concat([x[last], xp.zeros_like(x[end])], axis=axis)


def wave_step(xp: Any, u: Any, before: Any, speed: Any, damping: Any) -> Any:
    """Of a wave in three dimensions, of the eighth order in space."""
    laplace = 3 * (-205 / 72) * u
    for axis in range(3):
        for by, weight in enumerate((8 / 5, -1 / 5, 8 / 315, -1 / 560), 1):
            laplace = laplace + weight * _shifted_pair(xp, u, by, axis)
    after = (2 * u - before + speed * laplace) * damping
    return after, xp.sum((after - u) ** 2, axis=(0, 1)), xp.max(xp.abs(after), axis=2)


def sign_bits(xp: Any, x: Any, shift: Any) -> Any:
    """Eight to a byte, and how many are set."""
    rows, columns = x.shape
    bits = xp.astype(xp.reshape(x > 0, (rows, columns // 8, 8)), xp.int32)
    packed = xp.sum(bits << shift, axis=-1, dtype=xp.int32)
    v = packed - ((packed >> 1) & 0x55)
    v = (v & 0x33) + ((v >> 2) & 0x33)
    v = (v + (v >> 4)) & 0x0F
    found = xp.any(v == 8, axis=0), xp.all(v > 0, axis=1)
    return xp.astype(packed - 128, xp.int8), xp.sum(v, axis=1, dtype=xp.int32), *found


def volume_gradient(xp: Any, x: Any) -> Any:
    """Means of cubes of 2 by 2 by 2, and how much they change inside."""
    f = wide(xp, x)
    part = {(i, j, k): f[:, i::2, j::2, k::2] for i in range(2) for j in range(2) for k in range(2)}
    pool = sum(part.values()) * 0.125
    z, y, x = (sum(each if at[axis] else -each for at, each in part.items()) for axis in range(3))
    size = xp.sqrt(z * z + y * y + x * x + 1e-6)
    return xp.astype(pool, xp.float16), xp.astype(size, xp.float16), xp.max(pool, axis=1)


def _cosines(x: list[Any]) -> list[Any]:
    """Eight arrays' cosine transform, element by element."""
    scale = [sqrt(1 / 8)] + [0.5] * 7
    return [sum(scale[k] * cos((2 * j + 1) * k * pi / 16) * x[j] for j in range(8)) for k in range(8)]


def cosine_blocks(xp: Any, x: Any) -> Any:
    """Of 8 by 8 pixels, and the sums of their sizes."""
    y = xp.stack(_cosines([x[:, :, j::8] for j in range(8)]), axis=-1)
    z = xp.stack(_cosines([y[:, j::8] for j in range(8)]), axis=2)
    return z, xp.sum(xp.abs(z), axis=(2, 4))


def autocorrelation(xp: Any, x: Any) -> Any:
    """Of eight lags, and how much of a row is symmetric."""
    c = x - xp.mean(x, axis=1, keepdims=True)
    v, n = xp.sum(c * c, axis=1), x.shape[1]
    lags = xp.stack([xp.sum(c[:, : n - k] * c[:, k:], axis=1) / v for k in range(8)], axis=1)
    even = 0.5 * (c + xp.flip(c, axis=1))
    return lags, even, xp.sum(even * even, axis=1) / v


def histogram_entropy(xp: Any, x: Any, edge: Any) -> Any:
    """Of rows, in sixteen bins."""
    y, at = x[:, :, None], (edge - 8) * 0.5
    count = xp.sum((y >= at[:-1]) & (y < at[1:]), axis=1, dtype=xp.int32)
    p = wide(xp, count) / x.shape[1]
    entropy = -xp.sum(xp.where(count > 0, p * xp.log2(xp.maximum(p, 1e-12)), 0.0), axis=1)
    return count, entropy, xp.sum(count, axis=0, dtype=xp.int32)


def half_chroma(xp: Any, x: Any) -> Any:
    """Red, green and blue as luma, and as chroma of half the resolution."""
    r, g, b = (wide(xp, x[..., k]) + 128.0 for k in range(3))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    n, h, w = y.shape
    u, v = (
        xp.mean(xp.reshape(each, (n, h // 2, 2, w // 2, 2)), axis=(2, 4)) for each in (0.492 * (b - y), 0.877 * (r - y))
    )
    planes = (xp.astype(xp.clip(xp.floor(each + 0.5), -128, 127), xp.int8) for each in (y - 128.0, u, v))
    return *planes, xp.mean(y, axis=(1, 2))


def group_quantised(xp: Any, x: Any) -> Any:
    """Groups of 128 in a row as int8, their scales, and the error of rows."""
    rows, columns = x.shape
    g = wide(xp, xp.reshape(x, (rows, columns // 128, 128)))
    s = xp.max(xp.abs(g), axis=-1, keepdims=True) / 127.0 + 1e-12
    q = xp.clip(xp.round(g / s), -127, 127)
    return xp.reshape(xp.astype(q, xp.int8), (rows, columns)), s[..., 0], xp.sum((q * s - g) ** 2, axis=(1, 2))


def float8_rows_and_columns(xp: Any, x: Any) -> Any:
    """By scales of rows, and transposed by scales of columns."""
    h = wide(xp, x)
    row = xp.max(xp.abs(h), axis=1, keepdims=True) * (1 / 448.0)
    column = xp.max(xp.abs(h), axis=0, keepdims=True) * (1 / 448.0)
    arrays = xp.astype(h / row, xp.float8_e4m3fn), xp.astype((h / column).mT, xp.float8_e4m3fn)
    return *arrays, row[:, 0], column[0]


def chunk_moments(xp: Any, x: Any) -> Any:
    """Moments of rows by Welford's merging of chunks."""
    rows, columns = x.shape
    c = xp.reshape(x, (rows, columns // 32, 32))
    mean = xp.mean(c, axis=2)
    inside = xp.sum((c - mean[:, :, None]) ** 2, axis=2)
    whole = xp.mean(mean, axis=1, keepdims=True)
    var = (xp.sum(inside, axis=1) + 32 * xp.sum((mean - whole) ** 2, axis=1)) / columns
    d = (x - whole) / xp.sqrt(var + 1e-6)[:, None]
    return xp.mean(d**3, axis=1), xp.mean(d**4, axis=1) - 3.0, var, d


def softmax_of_two_axes(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    m = xp.max(h, axis=(1, 3), keepdims=True)
    z = xp.log(xp.sum(xp.exp(h - m), axis=(1, 3), keepdims=True)) + m
    p = xp.exp(h - z)
    return xp.astype(p, xp.float16), z[:, 0, :, 0], xp.max(p, axis=2), -xp.sum(p * (h - z), axis=(1, 3))


def cholesky_solve(xp: Any, m: Any, b: Any) -> Any:
    """Four equations in four unknowns, in double precision, with the determinant's logarithm."""
    a = xp.matmul(m, m.mT)
    low: list[list[Any]] = [[xp.zeros_like(b[:, 0])] * 4 for _ in range(4)]
    for i in range(4):
        for j in range(i + 1):
            s = a[:, i, j] - sum(low[i][k] * low[j][k] for k in range(j))
            low[i][j] = xp.sqrt(s + 0.5) if i == j else s / low[j][j]
    y: list[Any] = []
    for i in range(4):
        y.append((b[:, i] - sum(low[i][k] * y[k] for k in range(i))) / low[i][i])
    x = y[:]
    for i in (3, 2, 1, 0):
        x[i] = (y[i] - sum(low[k][i] * x[k] for k in range(i + 1, 4))) / low[i][i]
    factor = xp.stack([xp.stack(row, axis=-1) for row in low], axis=1)
    return xp.stack(x, axis=1), 2 * sum(xp.log(low[i][i]) for i in range(4)), factor


def window_scores(xp: Any, x: Any) -> Any:
    """How far a value is from the mean of the nine around it, and the range of those."""
    windows = [x[:, i : x.shape[1] - 8 + i] for i in range(9)]
    high = low = windows[0]
    for each in windows[1:]:
        high, low = xp.maximum(high, each), xp.minimum(low, each)
    mean = sum(windows) / 9.0
    var = sum(each * each for each in windows) / 9.0 - mean * mean
    z = (windows[4] - mean) / xp.sqrt(xp.maximum(var, 0.0) + 1e-3)
    return z, (high - low)[:, ::2], xp.sum(xp.abs(z) > 1.5, axis=1, dtype=xp.int32)


def unshuffled_norm(xp: Any, x: Any, slope: Any) -> Any:
    """Instance norm and PReLU, of which 2 by 2 pixels become channels."""
    n, c, h, w = x.shape
    f = wide(xp, x)
    y = (f - xp.mean(f, axis=(2, 3), keepdims=True)) / xp.sqrt(xp.var(f, axis=(2, 3), keepdims=True) + 1e-4)
    y = xp.reshape(xp.where(y > 0, y, slope * y), (n, c, h // 2, 2, w // 2, 2))
    y = xp.reshape(xp.permute_dims(y, (0, 1, 3, 5, 2, 4)), (n, c * 4, h // 2, w // 2))
    return xp.astype(y, xp.float16), xp.mean(xp.abs(f), axis=1)

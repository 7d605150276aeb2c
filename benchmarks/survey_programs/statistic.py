"""Covariances, standardisation, weighted means, running histories, histograms, distances."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide


def _centred(xp: Any, x: Any, axis: Any) -> Any:
    return x - xp.mean(x, axis=axis, keepdims=True)


def covariance(xp: Any, x: Any) -> Any:
    d = xp.astype(_centred(xp, wide(xp, x), 0), xp.bfloat16)
    return xp.matmul(d.mT, d, dtype=xp.float32) / x.shape[0]


def covariance_single(xp: Any, x: Any) -> Any:
    d = _centred(xp, x, 0)
    return (d.mT @ d) / x.shape[0]


def batched_covariance(xp: Any, x: Any) -> Any:
    d = xp.astype(_centred(xp, wide(xp, x), 1), xp.bfloat16)
    return d.mT @ d


def correlation(xp: Any, x: Any, y: Any) -> Any:
    """Of the columns of x with those of y, one with one."""
    a, b = _centred(xp, x, 0), _centred(xp, y, 0)
    return xp.sum(a * b, axis=0) * xp.rsqrt(xp.sum(a * a, axis=0) * xp.sum(b * b, axis=0))


def standardise_columns(xp: Any, x: Any) -> Any:
    d = _centred(xp, x, 0)
    return d * xp.rsqrt(xp.mean(d * d, axis=0, keepdims=True) + 1e-6)


def standardise_rows(xp: Any, x: Any) -> Any:
    d = _centred(xp, x, 1)
    return d * xp.rsqrt(xp.mean(d * d, axis=1, keepdims=True) + 1e-6)


def standardise_all(xp: Any, x: Any) -> Any:
    d = _centred(xp, x, None)
    return d * xp.rsqrt(xp.mean(d * d) + 1e-6)


def min_max_columns(xp: Any, x: Any) -> Any:
    low, high = xp.min(x, axis=0, keepdims=True), xp.max(x, axis=0, keepdims=True)
    return (x - low) / (high - low)


def centre_both(xp: Any, x: Any) -> Any:
    """Of kernel matrices: rows and columns centred."""
    rows, columns = xp.mean(x, axis=1, keepdims=True), xp.mean(x, axis=0, keepdims=True)
    return x - rows - columns + xp.mean(x)


def moments(xp: Any, x: Any) -> Any:
    """Mean, variance, skewness and kurtosis of each column."""
    mean = xp.mean(x, axis=0)
    d = x - mean
    square = d * d
    var = xp.mean(square, axis=0)
    return mean, var, xp.mean(square * d, axis=0) * xp.rsqrt(var) / var, xp.mean(square * square, axis=0) / (var * var)


def weighted_mean(xp: Any, x: Any, w: Any) -> Any:
    """Of rows."""
    return xp.sum(wide(xp, x) * w[:, None], axis=0) / xp.sum(w)


def weighted_moments(xp: Any, x: Any, w: Any) -> Any:
    total = xp.sum(w)
    mean = xp.sum(x * w[:, None], axis=0) / total
    d = x - mean
    return mean, xp.sum(d * d * w[:, None], axis=0) / total


def weighted_elements(xp: Any, x: Any, w: Any) -> Any:
    """A mean a row, with a weight an element."""
    v = wide(xp, w)
    return xp.sum(wide(xp, x) * v, axis=-1) / xp.sum(v, axis=-1)


def update_history(xp: Any, x: Any, mean: Any, square: Any) -> Any:
    """Running means of a batch (rows, features), and the batch standardised by them."""
    mean = 0.99 * mean + 0.01 * xp.mean(x, axis=0)
    square = 0.99 * square + 0.01 * xp.mean(x * x, axis=0)
    return (x - mean) * xp.rsqrt(xp.maximum(square - mean * mean, 1e-2)), mean, square


def discounted_history(xp: Any, history: Any, discount: Any) -> Any:
    """(series, steps, features) over the steps, with a weight a step."""
    return xp.sum(wide(xp, history) * discount[:, None], axis=1)


def history_extremes(xp: Any, history: Any) -> Any:
    h = wide(xp, history)
    return xp.min(h, axis=1), xp.max(h, axis=1), xp.mean(h, axis=1)


def cumulative_histogram(xp: Any, x: Any, edges: Any) -> Any:
    """How many of x lie below each edge, by comparison with all of them."""
    return xp.sum(xp.astype(x[:, None] < edges, xp.int32), axis=0)


def squared_distances(xp: Any, x: Any, y: Any) -> Any:
    xx, yy = xp.sum(wide(xp, x) ** 2, axis=1), xp.sum(wide(xp, y) ** 2, axis=1)
    return xx[:, None] + yy - 2.0 * xp.astype(x @ y.mT, xp.float32)


def gaussian_kernel(xp: Any, x: Any, y: Any) -> Any:
    return xp.astype(xp.exp(-0.002 * xp.maximum(squared_distances(xp, x, y), 0.0)), xp.bfloat16)


def cosine_similarities(xp: Any, x: Any, y: Any) -> Any:
    a, b = (xp.rsqrt(xp.sum(wide(xp, v) ** 2, axis=1)) for v in (x, y))
    return xp.astype(xp.astype(x @ y.mT, xp.float32) * a[:, None] * b, xp.bfloat16)


def log_sum_exp_rows(xp: Any, x: Any) -> Any:
    most = xp.max(x, axis=1, keepdims=True)
    return xp.sum(most, axis=1) + xp.log(xp.sum(xp.exp(x - most), axis=1))


def log_sum_exp_columns(xp: Any, x: Any) -> Any:
    most = xp.max(x, axis=0, keepdims=True)
    return xp.sum(most, axis=0) + xp.log(xp.sum(xp.exp(x - most), axis=0))


def entropy(xp: Any, p: Any) -> Any:
    h = wide(xp, p)
    return -xp.sum(h * xp.log(h), axis=-1)


def softmax_axis_0(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    e = xp.exp(h - xp.max(h, axis=0, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=0, keepdims=True), xp.bfloat16)


def softmax_axis_1(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    e = xp.exp(h - xp.max(h, axis=1, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=1, keepdims=True), xp.bfloat16)


def peak_scaled(xp: Any, x: Any) -> Any:
    """By the largest magnitude over two leading axes of three."""
    return x / xp.max(xp.abs(x), axis=(0, 1), keepdims=True)


def norm_scaled(xp: Any, x: Any) -> Any:
    """By the norm of the whole."""
    return x * xp.rsqrt(xp.sum(x * x))

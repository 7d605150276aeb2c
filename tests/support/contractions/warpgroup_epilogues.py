"""Functions with a product and something behind it, which the interpreter's and the GPU's tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirfuse as mf


def bias_relu(x, w, b):
    return mf.maximum(x @ w + b, 0)


def residual(x, w, r):
    return (x @ w) * 2 + r


def single(x, w):
    return (x @ w).astype(mf.float32)


def scaled_rows(x, w, s):
    return (x @ w).astype(mf.float32) * s


def two_results(x, w, b):
    y = x @ w
    return y, y + b


X, W = (136, 200), (200, 72)

CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Callable[..., list[np.ndarray]]]] = {
    "bias_relu": (bias_relu, [(72,)], lambda x, w, b: [np.maximum(x @ w + b, 0)]),
    "residual": (residual, [(136, 72)], lambda x, w, r: [(x @ w) * 2 + r]),
    "single": (single, [], lambda x, w: [x @ w]),
    "scaled_rows": (scaled_rows, [(136, 1)], lambda x, w, s: [(x @ w) * s]),
    "two_results": (two_results, [(72,)], lambda x, w, b: [x @ w, x @ w + b]),
}
"""By name: the function, the shapes of what it takes besides a product's operands, and its results in NumPy."""


def epilogue_inputs(name: str) -> list[np.ndarray]:
    """Small integers, of which every sum is exact in half precision."""
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-1, 2, shape).astype(np.float16) for shape in (X, W, *CASES[name][1])]
    arrays[1] *= rng.random(W) < 0.1
    return arrays

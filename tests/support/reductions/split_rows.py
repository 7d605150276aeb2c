"""Long rows of a number that run time knows, which are reduced in parts; shared by interpreter and GPU tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.reductions.static_reductions import Case

COLUMNS = 2**17 + 64
"""Elements of a row that no block holds, which 12 parts of 21 KB make up in half precision."""


def total(x: Any) -> Any:
    return mf.sum(x.astype(mf.float32), axis=1)


def root_mean_square(x: Any, scale: Any) -> Any:
    return mf.sqrt(mf.mean(x.astype(mf.float32) ** 2, axis=1, keepdims=True)) * scale


def largest(x: Any) -> Any:
    return mf.max(x, axis=-1)


def distance(x: Any, y: Any, more: Any) -> Any:
    return mf.sqrt(mf.sum((x.astype(mf.float32) - y.astype(mf.float32)) ** 2, axis=1)) + more


CASES: dict[str, Case] = {
    "sum": Case(total, ((3, COLUMNS),), "bfloat16", lambda x: x.sum(1)),
    "one operand more": Case(
        root_mean_square, ((5, COLUMNS), (5, 1)), "float16", lambda x, s: np.sqrt((x**2).mean(1, keepdims=True)) * s
    ),
    "matrices of rows": Case(largest, ((2, 3, COLUMNS),), "float16", lambda x: x.max(-1)),
    "two arrays": Case(
        distance,
        ((2, COLUMNS), (2, COLUMNS), (2,)),
        "float16",
        lambda x, y, more: np.sqrt(((x - y) ** 2).sum(1)) + more,
    ),
}

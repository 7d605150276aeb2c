"""A function with results before, between and behind its reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf


def staged(x: Any) -> Any:
    """One result before any reduction, one between the maximum and the sum behind it, and two that need both."""
    h = mf.maximum(x, 0.0) * 2.0
    below = h - mf.max(h, axis=-1, keepdims=True)
    total = mf.sum(below * below, axis=-1, keepdims=True)
    return h + 1.0, below, below * total, total


def staged_exactly(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """What it is of small integers."""
    h = np.maximum(x, 0) * 2
    below = h - h.max(-1, keepdims=True)
    total = (below * below).sum(-1, keepdims=True)
    return h + 1, below, below * total, total

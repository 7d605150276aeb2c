"""Shapes of values: every array starts with the thread axis, of extent 1 where all threads agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirfuse.interpreter.machine import Frame


def expand(condition: np.ndarray, ndim: int) -> np.ndarray:
    """Adds trailing axes, so that one value a thread broadcasts against vectors."""
    return condition.reshape(condition.shape + (1,) * (ndim - condition.ndim))


def common_lanes(*arrays: np.ndarray) -> int:
    """The thread axis that the arrays broadcast to."""
    return max(array.shape[0] for array in arrays)


def spread(array: np.ndarray, lanes: int) -> np.ndarray:
    """The array with a thread axis of exactly `lanes` (a view)."""
    return array if array.shape[0] == lanes else np.broadcast_to(array, (lanes, *array.shape[1:]))


def uniform(array: np.ndarray, frame: Frame) -> Any:
    """The value that all active threads have, or None where they differ."""
    if array.shape[0] == 1:
        return array[0]
    chosen = array if frame.mask is None else array[frame.mask]
    return chosen[0] if (chosen == chosen[0]).all() else None


def merge(condition: np.ndarray, new: Any, old: Any) -> Any:
    """Per thread `new` where the condition (one bool a thread) holds, else `old`; None where it cannot be merged."""
    if new is old:
        return new
    if not isinstance(new, np.ndarray) or not isinstance(old, np.ndarray):
        return None
    return np.where(expand(condition, max(new.ndim, old.ndim)), new, old)

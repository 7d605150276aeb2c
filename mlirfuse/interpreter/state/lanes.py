"""Shapes of values: the first axis of each array is the thread, of extent 1 if all threads have the same value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import Extent
from mlirfuse.interpreter.state.types import DYNAMIC


def expand(condition: np.ndarray, ndim: int) -> np.ndarray:
    """Adds trailing axes, so that an array with one value for each thread broadcasts against vectors."""
    return condition.reshape(condition.shape + (1,) * (ndim - condition.ndim))


def common_lanes(*arrays: np.ndarray) -> int:
    """The extent of the thread axis that the arrays broadcast to."""
    return max(array.shape[0] for array in arrays)


def over_lanes(array: np.ndarray, lanes: int) -> np.ndarray:
    """The array with a thread axis of exactly `lanes` (a view)."""
    return array if array.shape[0] == lanes else np.broadcast_to(array, (lanes, *array.shape[1:]))


def uniform(array: np.ndarray, frame: Frame) -> Any:
    """The value of all active threads; None if their values differ."""
    if array.shape[0] == 1:
        return array[0]
    chosen = array if frame.mask is None else array[frame.mask]
    return chosen[0] if (chosen == chosen[0]).all() else None


def merge(condition: np.ndarray, new: Any, old: Any) -> Any:
    """For each thread `new` if the thread's condition holds, else `old`; None for values that cannot be merged."""
    if new is old:
        return new
    if not isinstance(new, np.ndarray) or not isinstance(old, np.ndarray):
        return None
    return np.where(expand(condition, max(new.ndim, old.ndim)), new, old)


def as_lanes(extent: Extent) -> np.ndarray:
    """A size or stride as a value with a thread axis."""
    return np.array([extent], np.int64) if isinstance(extent, int) else extent


def as_extent(value: np.ndarray) -> Extent:
    """A value with a thread axis as a size or stride: an int if all threads have the same value."""
    return int(value[0]) if value.shape[0] == 1 else value


def mixed(static: Sequence[int], dynamic: Sequence[np.ndarray]) -> list[Extent]:
    """Static entries with the dynamic ones filled in, as view-like ops encode them."""
    rest = iter(dynamic)
    return [as_extent(next(rest)) if entry == DYNAMIC else entry for entry in static]


def element_indices(shape: Sequence[int]) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """A function from start indices to the indices of all elements of a vector along a memref's last dimensions."""
    ndim = 1 + len(shape)
    steps = [np.arange(n).reshape([1] * (1 + d) + [n] + [1] * (len(shape) - 1 - d)) for d, n in enumerate(shape)]

    def indices(starts: Sequence[np.ndarray]) -> list[np.ndarray]:
        over_lanes = [expand(start, ndim) for start in starts]
        lead = len(over_lanes) - len(steps)
        return [*over_lanes[:lead], *(at + step for at, step in zip(over_lanes[lead:], steps, strict=True))]

    return indices

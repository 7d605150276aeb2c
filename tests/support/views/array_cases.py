"""Functions of arrays with what they compute in double precision: what the tests on the CPU and on the GPU share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ArrayCase:
    """A function, the shapes and the dtype of its arguments, and what it computes, in double precision."""

    fn: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    exact: Callable[..., np.ndarray]

    def expected(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return self.exact(*(a.astype(np.float64) for a in arrays))

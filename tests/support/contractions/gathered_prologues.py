"""Convolutions of what an elementwise op computes: a pending normalisation and an activation, in each pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.convolutions import PASSES, Case, dgrad, forward, integers, wgrad

CASES = {
    "padded": Case(2, (8, 8), 16, 32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "strided, dilated": Case(2, (9, 7), 16, 32, (3, 3), (2, 2), ((1, 0), (2, 1)), (1, 2)),
    "a pixel high": Case(1, (1, 9), 8, 8, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "a pixel": Case(2, (1, 1), 8, 8, (3, 2), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "1x1": Case(2, (8, 8), 64, 64, (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    "grouped": Case(2, (8, 8), 16, 32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4),
    "6 filters": Case(2, (9, 7), 16, 6, (3, 2), (2, 1), ((1, 0), (2, 1)), (1, 2)),
    "5 channels": Case(2, (9, 7), 5, 6, (3, 2), (1, 1), ((1, 0), (2, 1)), (1, 2)),
    "one dimension": Case(2, (20,), 16, 24, (4,), (1,), ((6, 0),), (2,)),
}


@dataclass(frozen=True)
class Normalised:
    """A pass whose first operand is `relu(a * scale + shift)`, which is not zero where `a` is.

    Attributes:
        fn: of (a, scale, shift, other operand).
        inputs: its arguments.
        expected: the result, in double precision.
    """

    fn: Callable[..., Any]
    inputs: list[np.ndarray]
    expected: np.ndarray


def normalised(name: str, case: Case, dtype: Any) -> Normalised:
    """The pass of that name: `forward`, `wgrad` or `dgrad`."""
    rng, p = np.random.default_rng(len(name)), case.parameters
    x, w, dy = (integers(rng, shape, dtype) // 2 for shape in case.shapes)
    convolve, of_filters, of_images = PASSES[len(case.sizes) - 1]
    a, other, reference, function = {
        "forward": (x, w, forward, lambda h, w: convolve(h, w, **p)),
        "wgrad": (x, dy, wgrad, lambda h, dy: of_filters(h, dy, kernel_size=case.taps, **p)),
        "dgrad": (dy, w, dgrad, lambda h, w: of_images(h, w, input_size=case.sizes, **p)),
    }[name]
    scale, shift = (rng.integers(low, 3, a.shape[-1]).astype(np.float32) for low in (1, -1))

    def fn(a: Any, scale: Any, shift: Any, other: Any) -> Any:
        return function(mf.maximum(a.astype(mf.float32) * scale + shift, 0).astype(a.dtype), other)

    made = np.maximum(a.astype(np.float64) * scale + shift, 0)
    return Normalised(fn, [a, scale, shift, other], reference(case, made, other.astype(np.float64)))

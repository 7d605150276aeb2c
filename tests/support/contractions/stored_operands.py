"""Einsums of computed operands that are stored in other orders than their sources; exact in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf


@dataclass(frozen=True)
class StoredOperands:
    """An einsum of two operands that are computed in single precision, and rounded.

    Attributes:
        equation: the equation.
        shapes: of the operands.
        computed: whether operand A, and B, is computed.
    """

    equation: str
    shapes: Sequence[tuple[int, ...]]
    computed: tuple[bool, bool] = (True, True)

    def __str__(self) -> str:
        return f"{self.equation} {self.shapes} {self.computed}"

    def inputs(self) -> list[np.ndarray]:
        """An array for each operand, and a gate behind each."""
        rng = np.random.default_rng(len(self.equation))
        return [rng.integers(-2, 3, shape).astype(np.float16) for shape in self.shapes for _ in (0, 1)]

    def fn(self, a: Any, gate: Any, b: Any, other: Any) -> Any:
        """Doubles elements of computed operands whose gate is positive."""
        operands = [
            (x.astype(mf.float32) * mf.where(g > 0, 2.0, 1.0)).astype(x.dtype) if computed else x
            for x, g, computed in zip((a, b), (gate, other), self.computed, strict=True)
        ]
        return mf.einsum(self.equation, *operands)

    def expected(self, a: np.ndarray, gate: np.ndarray, b: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The same in float64."""
        operands = [
            x.astype(np.float64) * np.where(computed & (g > 0), 2, 1)
            for x, g, computed in zip((a, b), (gate, other), self.computed, strict=True)
        ]
        return np.einsum(self.equation, *operands)


SMALL = [
    StoredOperands("ikc,jkc->ijc", ((64, 64, 32), (64, 64, 32))),
    StoredOperands("ikc,jkc->ijc", ((72, 40, 24), (88, 40, 24)), (True, False)),
    StoredOperands("kic,kjc->ijc", ((72, 72, 40), (72, 88, 40)), (False, True)),
    StoredOperands("sic,sjd->ijcd", ((256, 48, 32), (256, 40, 32)), (True, False)),
    StoredOperands("cik,cjk->ijc", ((48, 72, 64), (48, 88, 64)), (False, False)),
]
"""Enough elements that kernels of their own are predicted to be faster than prologues."""

LARGE = [
    StoredOperands("ikc,jkc->ijc", ((384, 384, 128), (384, 384, 128))),
    StoredOperands("ikc,jkc->ijc", ((200, 136, 72), (264, 136, 72)), (True, False)),
    StoredOperands("sic,sjd->ijcd", ((512, 128, 32), (512, 128, 32)), (True, False)),
]


def one_kernel_for_both(a: Any, gate: Any, b: Any, other: Any) -> Any:
    """Both operands are computed by one kernel, as they need the same array."""
    first, second = (mf.where(gate > 0, x * other, x) for x in (a, b))
    return mf.einsum("ikc,jkc->ijc", first, second)


def one_array(a: Any, gate: Any, b: Any, other: Any) -> Any:
    """Both operands are one array."""
    both = mf.where(gate > 0, a * other, b)
    return mf.einsum("ikc,jkc->ijc", both, both)


def shared_inputs(fn: Any, extents: tuple[int, int, int]) -> tuple[list[np.ndarray], np.ndarray]:
    """Arrays for either function, and the result in float64."""
    arrays = StoredOperands("ikc,jkc->ijc", (extents, extents)).inputs()
    a, gate, b, other = (x.astype(np.float64) for x in arrays)
    if fn is one_array:
        first = second = np.where(gate > 0, a * other, b)
    else:
        first, second = (np.where(gate > 0, x * other, x) for x in (a, b))
    return arrays, np.einsum("ikc,jkc->ijc", first, second)

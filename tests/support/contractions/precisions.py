"""Products in tf32, 3xtf32 and float8 that the interpreter's and the GPU's tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import mlirfuse as mf
from mlirfuse.support.precision import to_tf32

DTYPES = {"float32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn)}
DTYPES |= {"e5m2": np.dtype(ml_dtypes.float8_e5m2)}


@dataclass(frozen=True)
class PreciseProduct:
    """A product of two matrices.

    Attributes:
        m, n, k: its extents.
        form: whether the left and the right operand lie transposed (`t`) in memory or not (`n`).
        left, right: dtypes of the operands, by their names in `DTYPES`.
        precision: what `matmul` is asked for.
        out: dtype of the result; None is the default.
    """

    m: int
    n: int
    k: int
    form: str
    left: str
    right: str
    precision: str | None = None
    out: str | None = None

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}-{self.form}-{self.left}-{self.right}-{self.precision}-{self.out}"

    @property
    def fn(self) -> Callable[..., Any]:
        def product(x, w):
            x = x.mT if self.form[0] == "t" else x
            w = w.mT if self.form[1] == "t" else w
            return mf.matmul(x, w, precision=self.precision, dtype=self.out)

        return product

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        left = (self.m, self.k) if self.form[0] == "n" else (self.k, self.m)
        return left, (self.k, self.n) if self.form[1] == "n" else (self.n, self.k)

    @property
    def specs(self) -> list[mf.TensorSpec]:
        return [mf.TensorSpec(s, DTYPES[d]) for s, d in zip(self.shapes, (self.left, self.right), strict=True)]

    def integers(self) -> list[np.ndarray]:
        """Operands that every dtype holds, whose sums float16 holds."""
        rng = np.random.default_rng(self.k)
        x, w = (rng.integers(-2, 3, shape) for shape in self.shapes)
        w = w * (rng.random(w.shape) < 64 / self.k)
        return [x.astype(DTYPES[self.left]), w.astype(DTYPES[self.right])]

    def normal(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.k)
        kinds = (DTYPES[self.left], DTYPES[self.right])
        return [rng.standard_normal(shape).astype(kind) for shape, kind in zip(self.shapes, kinds, strict=True)]

    def exact(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """In float64."""
        x, w = (a.astype(np.float64) for a in inputs)
        return (x.T if self.form[0] == "t" else x) @ (w.T if self.form[1] == "t" else w)

    def in_tf32(self, inputs: Sequence[np.ndarray], ties: Any) -> np.ndarray:
        """The sums of exact products of operands in tf32."""
        return self.exact([to_tf32(a, ties=ties) for a in inputs])


FORMS = ("nt", "nn", "tn", "tt")
KINDS = (
    ("float32", "float32", "tf32"),
    ("float32", "float32", "3xtf32"),
    ("e4m3", "e4m3", None),
    ("e5m2", "e4m3", None),
    ("e4m3", "e4m3", "fast_accum"),
)
"""Dtypes of the operands, and precision."""

PRECISE = [
    *(
        PreciseProduct(*extents, form, *kind)
        for extents in ((72, 40, 144), (33, 20, 50))
        for form in FORMS
        for kind in KINDS
    ),
    *(PreciseProduct(64, 32, 256, "nt", "e4m3", "e5m2", None, out) for out in ("float16", "bfloat16")),
    PreciseProduct(40, 24, 96, "nt", "e4m3", "e4m3", None, "float8_e5m2"),
    *(PreciseProduct(m, n, 64, "nt", *kind) for m, n in ((1, 24), (24, 1)) for kind in KINDS[:3]),
]
"""Extents that tensor maps can describe where k is contiguous, and some that they cannot."""


def ties(shape: tuple[int, int]) -> np.ndarray:
    """float32 with 12 significant bits: half of the numbers lie half-way between two in tf32."""
    rng = np.random.default_rng(1)
    return (rng.integers(2048, 4096, shape) * rng.choice([-1, 1], shape)).astype(np.float32)

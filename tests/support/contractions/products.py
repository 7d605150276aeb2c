"""Matrix products that the interpreter's and the GPU's tests share: functions, inputs, and exact results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.contractions.families.fma import fma_schedule
from mlirfuse.schedule.contractions.families.mma import MMA_STEPS, mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.parts.contraction import REDUCTIONS, SLICED
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.dtypes import dtype_of

__all__ = [
    "FORMS",
    "FUNCTIONS",
    "MOST_IN_CLUSTER",
    "PRODUCTS",
    "REDUCTIONS",
    "SLICED",
    "SPLITS",
    "WGMMA",
    "Product",
    "pinned_schedule",
]

DTYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16), "float32": np.dtype(np.float32)}
DTYPES |= {"float64": np.dtype(np.float64), "int32": np.dtype(np.int32), "int8": np.dtype(np.int8)}

MOST_IN_CLUSTER = 8
"""Blocks of a cluster, and so the largest split that one cluster reduces."""

FORMS = ("nn", "nt", "tn", "tt")
"""Whether the left and the right operand lie transposed in memory."""


def nn(x, w):
    return x @ w


def nt(x, w):
    return x @ w.mT


def tn(x, w):
    return x.mT @ w


def tt(x, w):
    return x.mT @ w.mT


FUNCTIONS: dict[str, Callable[..., Any]] = {"nn": nn, "nt": nt, "tn": tn, "tt": tt}


@dataclass(frozen=True)
class Product:
    """A product of small integers, which every order of summation gives exactly.

    Attributes:
        m, n, k: its extents.
        form: one of `FORMS`.
        dtype: of the operands and the result.
        batch: leading extents of the left operand, and of the right one.
    """

    m: int
    n: int
    k: int
    form: str = "nt"
    dtype: str = "bfloat16"
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __str__(self) -> str:
        batch = "" if self.batch == ((), ()) else f"-{self.batch[0]}x{self.batch[1]}"
        return f"{self.m}x{self.n}x{self.k}-{self.form}-{self.dtype}{batch}"

    @property
    def fn(self) -> Callable[..., Any]:
        return FUNCTIONS[self.form]

    @property
    def specs(self) -> list[mf.TensorSpec]:
        return [mf.TensorSpec(shape, self.dtype) for shape in self.shapes]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        left = (self.m, self.k) if self.form[0] == "n" else (self.k, self.m)
        right = (self.k, self.n) if self.form[1] == "n" else (self.n, self.k)
        return (*self.batch[0], *left), (*self.batch[1], *right)

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Operands whose every partial sum the accumulator holds exactly, and the result's type too."""
        rng = np.random.default_rng(seed)
        left, right = self.shapes
        x = rng.integers(-2, 3, left)
        # Few elements of a row that are not 0 keep the results small enough for 8 bits.
        w = rng.integers(-1, 2, right) * (rng.random(right) < 8 / self.k)
        return [x.astype(DTYPES[self.dtype]), w.astype(DTYPES[self.dtype])]

    def expected(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        x, w = (a.astype(np.float64) for a in inputs)
        x = x.swapaxes(-1, -2) if self.form[0] == "t" else x
        w = w.swapaxes(-1, -2) if self.form[1] == "t" else w
        return (x @ w).astype(DTYPES[self.dtype])


RAGGED = ((64, 64, 64), (33, 72, 40), (17, 5, 7), (2, 2, 2), (130, 70, 100), (7, 129, 33), (65, 3, 257))
"""Extents (m, n, k) that fill tiles, overrun them, and leave most of them empty."""

PRODUCTS = [
    *(Product(*extents, form) for extents in RAGGED for form in FORMS),
    *(Product(*extents, "nt", dtype) for extents in RAGGED[:4] for dtype in DTYPES if dtype != "bfloat16"),
    *(Product(40, 24, 48, form, dtype) for form in FORMS for dtype in ("float32", "float64", "int32")),
    *(Product(1, n, k, "nt") for n, k in ((40, 64), (1, 64), (64, 1))),
    Product(40, 1, 64, "nn"),
    Product(40, 24, 1, "nt"),
    Product(20, 24, 32, "nn", "float16", ((3,), (3,))),
    Product(20, 24, 32, "nt", "float16", ((2, 3), (3,))),
    Product(20, 24, 32, "tn", "float32", ((2, 1), (1, 3))),
    Product(20, 24, 32, "tt", "bfloat16", ((), (3,))),
]


def pinned_schedule(
    product: Product,
    m: int,
    n: int,
    split: int = 1,
    reduction: str = "last_block",
    instruction: str | None = None,
    swapped: bool = False,
    wide: bool = False,
) -> mf.Schedule:
    """A schedule of a product with that tile, whose partial tiles are reduced that way; `wide` as in `mma_schedule`."""
    batch = np.broadcast_shapes(*product.batch)
    dtype = dtype_of(product.dtype)
    accumulator = mf.float32 if dtype.bits == 16 else dtype
    along_k = (product.form[0] == "n", product.form[1] == "t")
    problem = ContractionProblem(batch, product.m, product.n, product.k, dtype, accumulator, 16, along_k)
    make = {"mma": mma_schedule, "fma": fma_schedule, "wgmma": wgmma_schedule}
    options = {"split": split, **({"wide": True, "step_bytes": MMA_STEPS[0]} if wide else {})}
    schedule = make[instruction or ("mma" if dtype.bits == 16 else "fma")](problem, m, n, **options)
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, swapped=swapped))
    assert schedule.contraction is not None
    if reduction in SLICED and split > 1:
        schedule = with_slices(schedule, reduction)
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, reduction=reduction))


SPLITS = [
    (Product(64, 64, 256), 32, 64, 2),
    (Product(40, 70, 257, "nn"), 16, 32, 3),
    (Product(40, 70, 200, "tt", "float32"), 16, 32, 7),
    (Product(33, 64, 512, "tn", "float16"), 64, 64, 16),
    (Product(20, 32, 96, "nt", "bfloat16", ((3,), ())), 16, 32, 3),
    (Product(24, 32, 544, "nt"), 16, 32, 16),  # slices of one row, some of them past the end
]
"""(product, rows and columns of a tile, split)"""

WGMMA = [
    (Product(64, 64, 64), 64, 64, 1),
    (Product(100, 40, 200), 64, 16, 1),
    (Product(128, 48, 136, "nn"), 128, 64, 2),
    (Product(72, 64, 320, "tt", "float16"), 64, 64, 5),
    (Product(72, 32, 128, "tn", "float16", ((2,), ())), 64, 64, 1),
]
"""The same, for products that tensor maps can describe."""

TAILS = [
    (Product(200, 136, 328, "nt"), 64, 64, 3, 2, "wgmma", True),
    (Product(256, 128, 704, "nn", "float16"), 64, 64, 5, 3, "wgmma", False),
    (Product(136, 72, 320, "tn", "bfloat16"), 128, 64, 2, 4, "wgmma", True),
    (Product(100, 70, 257, "nn"), 32, 32, 4, 5, "mma", False),
    (Product(100, 70, 200, "tt", "float32"), 16, 32, 7, 2, "fma", False),
]
"""(product, rows and columns of a tile, last tiles that are shared, by how many blocks, instruction, whether the grid
is persistent)"""


def tail_schedule(product: Product, m: int, n: int, tail: int, split: int, instruction: str, persistent: bool) -> Any:
    """A schedule of a product whose last tiles are shared by blocks, the others not."""
    whole = pinned_schedule(product, m, n, instruction=instruction)
    assert whole.contraction is not None
    part = replace(whole.contraction, tail=tail, split=split, reduction="last_block", persistent=persistent)
    return replace(whole, contraction=part)

"""Random products with random schedules by wgmma: extents, forms, epilogues, grids, and reductions of slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.parts.contraction import REDUCTIONS, SLICED
from tests.support.contractions.products import DTYPES, FORMS, Product
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule

ALL_RESIDENT = 64
"""More blocks than any of these products has: those that wait for each other must all be resident."""

GRIDS: tuple[dict[str, Any], ...] = (
    {},
    {"persistent": True},
    {"consumer_groups": 2},
    {"cluster": 2},
    {"cluster": 4},
    {"cluster": 2, "persistent": True},
    {"cluster": 2, "consumer_groups": 2},
    {"blocks_per_sm": 2},
    {"promote": 1},
    {"promote": 2, "persistent": True},
    {"split": 2},
    {"split": 3},
)

EPILOGUES = ("none", "bias", "residual", "two results", "row sums", "column sums")
MOST_ELEMENTS = 100_000
"""Of a result, for the interpreter's sake."""


@dataclass(frozen=True)
class ScheduledProduct:
    """A product of small integers with an epilogue, whose results are exact, and a schedule for it."""

    product: Product
    out: str
    epilogue: str
    schedule: mf.Schedule
    resident: int

    def __str__(self) -> str:
        return f"{self.product}, {self.epilogue} to {self.out}, {self.schedule.tile}, {self.schedule.contraction}"

    @property
    def fn(self) -> Callable[..., Any]:
        def fn(x, w, *rest):
            left, right = (x.mT if self.product.form[0] == "t" else x), (w.mT if self.product.form[1] == "t" else w)
            y = mf.matmul(left, right, dtype=self.out)
            if self.epilogue == "bias":
                return mf.maximum(y + rest[0], 0)
            if self.epilogue == "residual":
                return y + rest[0]
            if self.epilogue == "two results":
                return y, y + rest[0]
            if self.epilogue.endswith("sums"):
                return y, mf.sum(y.astype(mf.float32), axis=-1 if self.epilogue.startswith("row") else 0)
            return y

        return fn

    @property
    def inputs(self) -> list[np.ndarray]:
        shapes = {
            "bias": (self.product.n,),
            "two results": (self.product.n,),
            "residual": (self.product.m, self.product.n),
        }
        rest = [shapes[self.epilogue]] if self.epilogue in shapes else []
        rng = np.random.default_rng(1)
        return [*self.product.inputs(), *(rng.integers(-1, 2, shape).astype(DTYPES[self.out]) for shape in rest)]

    @property
    def expected(self) -> list[np.ndarray]:
        x, w, *rest = (a.astype(np.float64) for a in self.inputs)
        y = (x.T if self.product.form[0] == "t" else x) @ (w.T if self.product.form[1] == "t" else w)
        return {
            "none": lambda: [y],
            "bias": lambda: [np.maximum(y + rest[0], 0)],
            "residual": lambda: [y + rest[0]],
            "two results": lambda: [y, y + rest[0]],
            "row sums": lambda: [y, y.sum(axis=-1)],
            "column sums": lambda: [y, y.sum(axis=0)],
        }[self.epilogue]()


def scheduled_product(seed: int) -> ScheduledProduct:
    """The product of a seed; its schedule may be illegal for it."""
    rng = Random(seed)
    schedule, resident = _schedule(rng), rng.choice((1, 1, 2, 5))
    contraction = schedule.contraction
    assert contraction is not None
    if contraction.cluster > 1 or (contraction.split > 1 and contraction.reduction in SLICED):
        resident = ALL_RESIDENT
    m, n = schedule.tile[::-1] if contraction.swapped else schedule.tile
    columns = n * (contraction.cluster if rng.random() < 0.9 else 1)
    extents = [_extent(rng, m), _extent(rng, columns)]
    while extents[0] * extents[1] > MOST_ELEMENTS:
        extents[0] = max(8, extents[0] // 16 * 8)
    k = contraction.k * rng.randint(contraction.split, 5) - rng.choice((0, 0, 8, 56))
    product = Product(*extents, max(8, k), rng.choice(FORMS), rng.choice(("bfloat16", "float16")))
    out = rng.choice(("bfloat16", "float16", "float32", "float32"))
    epilogue = "none" if rng.random() < 0.5 else rng.choice(EPILOGUES)
    return ScheduledProduct(product, out, epilogue, schedule, resident)


def _extent(rng: Random, tile: int) -> int:
    """Of whole tiles, or with a last one that has more or fewer rows."""
    return max(8, tile * rng.randint(1, 4) - rng.choice((0, 0, 8, 24, tile // 16 * 8)))


def _schedule(rng: Random) -> mf.Schedule:
    grid = rng.choice(GRIDS)
    m = 64 if "blocks_per_sm" in grid else rng.choice((64, 128) if "consumer_groups" in grid else (64, 64, 128, 192))
    n = rng.choice((8, 16, 24, 48, 64, 72, 80, 96, 112, 128, *(() if "consumer_groups" in grid else (160, 192))))
    schedule = warpgroup_schedule(m, n, k=rng.choice((64, 64, 128)), stages=rng.choice((2, 2, 3, 4)), **grid)
    schedule = replace(schedule, order=rng.choice(("breadth", "depth")))
    contraction = schedule.contraction
    assert contraction is not None
    contraction = replace(contraction, raster=rng.choice((1, 1, 2, 3)), swapped=rng.random() < 0.2)
    if contraction.split > 1:
        contraction = replace(contraction, reduction=rng.choice(REDUCTIONS))
    schedule = replace(schedule, contraction=contraction)
    return with_slices(schedule, contraction.reduction) if contraction.reduction in SLICED else schedule

"""Persistent loops over tiles of two dimensions, over both of which a cluster is spread: what the CPU's and the GPU's
tests share.

A reduction over one of them is of some of the cluster's blocks, which are not all that there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from tests.support.numerics.closeness import check_results

ROWS, MIDDLE, COLUMNS = 5, 13, 68
"""Neither of a tile's dimensions fills its blocks, so that the last ones have padding."""


def over_the_middle(x: Any) -> Any:
    return mf.max(x, axis=1), mf.sum(x.astype(mf.float32))


def over_each(x: Any) -> Any:
    h = x.astype(mf.float32)
    return mf.sum(h, axis=1), mf.max(x, axis=2), mf.sum(h, axis=0), mf.sum(h)


def in_two_steps(x: Any) -> Any:
    """Of the first step's results all blocks along the second dimension have copies, when one of them is reduced."""
    h = x.astype(mf.float32)
    largest = mf.max(h, axis=2, keepdims=True)
    return mf.sum(mf.abs(h - largest), axis=1) * mf.min(largest, axis=1), mf.sum(h)


def _in_two_steps(x: np.ndarray) -> tuple[Any, ...]:
    largest = x.max(2, keepdims=True)
    return np.abs(x - largest).sum(1) * largest.min(1), x.sum()


REFERENCES: dict[Callable[..., Any], Callable[[np.ndarray], tuple[Any, ...]]] = {
    over_the_middle: lambda x: (x.max(1), x.sum()),
    over_each: lambda x: (x.sum(1), x.max(2), x.sum(0), x.sum()),
    in_two_steps: _in_two_steps,
}


@dataclass(frozen=True)
class Case:
    """A function, and how its tiles are spread.

    Attributes:
        fn: the function.
        blocks: blocks of a cluster along either dimension of a tile.
        dtype: of its argument.
        lanes: lanes along the last dimension; the others lie along the first one.
    """

    fn: Callable[..., Any]
    blocks: tuple[int, int]
    dtype: str = "float32"
    lanes: int = 8

    def __str__(self) -> str:
        return f"{self.fn.__name__} {'x'.join(map(str, self.blocks))} {self.dtype} {self.lanes}"

    def spec(self) -> mf.TensorSpec:
        return mf.TensorSpec(("rows", MIDDLE, COLUMNS), self.dtype)

    def schedule(self) -> mf.Schedule:
        tile, vector = (1, MIDDLE, COLUMNS), (1, 1, 2)
        lanes, warps, blocks = (1, 32 // self.lanes, self.lanes), (1, 2, 1), (1, *self.blocks)
        held = (math.prod(n) for n in zip(vector, lanes, warps, blocks, strict=True))
        repeats = tuple(-(-extent // n) for extent, n in zip(tile, held, strict=True))
        layout = BlockedLayout(vector, lanes, warps, repeats, blocks)
        return mf.Schedule(
            tile, layout, blocks_per_sm=1, persistent_loop=PersistentLoop((0,), "grid_sync", tile, layout)
        )

    def inputs(self) -> list[np.ndarray]:
        return [np.random.default_rng(1).standard_normal((ROWS, MIDDLE, COLUMNS)).astype(self.dtype)]

    def check(self, results: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
        check_results(results, REFERENCES[self.fn](inputs[0].astype(np.float64)), 1e-5)


CASES = [
    *(Case(fn, blocks) for fn in REFERENCES for blocks in ((1, 2), (2, 1), (2, 2), (4, 2), (2, 4))),
    *(Case(fn, (2, 2), dtype) for fn in REFERENCES for dtype in ("float16", "float64")),
    # No lanes along the first dimension of a tile, of which there would be one a receiver: one writes to all.
    *(Case(fn, blocks, lanes=32) for fn in REFERENCES for blocks in ((4, 2), (2, 2))),
]


def chosen(x: Any) -> Any:
    """What the heuristics spread over a cluster so."""
    return mf.max(x, axis=(1, 2)), mf.sum(x)

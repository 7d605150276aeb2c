"""Elementwise functions of arrays and of transposed ones: what the tests on the CPU and on the GPU share."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from tests.support.views.array_cases import ArrayCase


class Case(ArrayCase):
    """One of small integers, which are exact."""

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        return [rng.integers(-9, 10, shape).astype(dtype) for shape in self.shapes]

    def check(self, result: np.ndarray, arrays: list[np.ndarray]) -> None:
        np.testing.assert_array_equal(result.astype(np.float64), self.expected(arrays))


CASES = {
    "whole tiles": Case(lambda x: x.T + 1, ((256, 320),), "bfloat16", lambda x: x.T + 1),
    "ragged tiles": Case(lambda x: x.T * 2, ((300, 259),), "float32", lambda x: x.T * 2),
    "few columns": Case(lambda x: x.T + 1, ((1000, 3),), "float16", lambda x: x.T + 1),
    "few rows": Case(lambda x: x.T + 1, ((5, 1030),), "float16", lambda x: x.T + 1),
    "both": Case(lambda x, y: x + y.T, ((264, 136), (136, 264)), "bfloat16", lambda x, y: x + y.T),
    "itself": Case(lambda x: x - x.T, ((72, 72),), "float32", lambda x: x - x.T),
    "batches": Case(lambda x: x.mT + 1, ((3, 70, 40),), "bfloat16", lambda x: x.transpose(0, 2, 1) + 1),
    "reversed": Case(
        lambda x: mf.permute_dims(x, (2, 1, 0)) + 1, ((33, 6, 65),), "float32", lambda x: x.transpose(2, 1, 0) + 1
    ),
    "mirrored tiles": Case(lambda x: x - 2 * x.T, ((200, 200),), "bfloat16", lambda x: x - 2 * x.T),
    "an odd number of mirrored tiles": Case(lambda x: x - 2 * x.T, ((131, 131),), "float32", lambda x: x - 2 * x.T),
    "mirrored batches": Case(
        lambda x: x - 2 * x.mT, ((2, 136, 136),), "float16", lambda x: x - 2 * x.transpose(0, 2, 1)
    ),
    "one number": Case(lambda x, s: x.T * s, ((300, 96), (1, 1)), "float32", lambda x, s: x.T * s),
    "one number, reversed": Case(
        lambda x, s: mf.permute_dims(x, (3, 0, 2, 1)) * s,
        ((5, 8, 1, 96), (1, 1, 1, 1)),
        "float32",
        lambda x, s: x.transpose(3, 0, 2, 1) * s,
    ),
    "two across": Case(
        lambda x, y, z: x.T - 2 * y.T + z, ((72, 80), (72, 80), (80, 72)), "bfloat16", lambda x, y, z: x.T - 2 * y.T + z
    ),
    "bytes": Case(lambda x: x.T + x.T, ((150, 272),), "int8", lambda x: 2 * x.T),
    "float8": Case(lambda x: x.T.astype(mf.bfloat16) * 2, ((144, 96),), "float8_e4m3fn", lambda x: 2 * x.T),
    "wider results": Case(
        lambda x, r: (x.T * r).astype(mf.float32), ((136, 72), (136,)), "bfloat16", lambda x, r: x.T * r
    ),
    "bools": Case(lambda x, y: mf.where(x.T, y, x.T), ((80, 72), (72, 80)), "bool", lambda x, y: np.where(x.T, y, x.T)),
    "rows and columns": Case(
        lambda x, r, c: x.T * r + c, ((96, 64), (96,), (64, 1)), "float32", lambda x, r, c: x.T * r + c
    ),
}

ROWS = {
    "half precision": Case(
        lambda x: 2 * mf.permute_dims(x - mf.max(x, axis=1, keepdims=True), (1, 0)),
        ((150, 768),),
        "float16",
        lambda x: 2 * (x - x.max(1, keepdims=True)).T,
    ),
    "single precision": Case(
        lambda x: 2 * mf.permute_dims(x - mf.max(x, axis=1, keepdims=True), (1, 0)),
        ((70, 1024),),
        "float32",
        lambda x: 2 * (x - x.max(1, keepdims=True)).T,
    ),
    "two reduced dimensions": Case(
        lambda x: mf.permute_dims(x - mf.max(x, axis=(1, 2), keepdims=True), (2, 1, 0)).astype(mf.float16),
        ((100, 2, 256),),
        "float32",
        lambda x: (x - x.max((1, 2), keepdims=True)).transpose(2, 1, 0),
    ),
    "few rows": Case(
        lambda x: 2 * mf.permute_dims(x - mf.max(x, axis=1, keepdims=True), (1, 0)),
        ((7, 512),),
        "bfloat16",
        lambda x: 2 * (x - x.max(1, keepdims=True)).T,
    ),
}
"""Functions of whole rows whose results are contiguous along the rows' numbers."""


def turned(x: mf.Tensor) -> mf.Tensor:
    return x.T + 1


def in_order(order: tuple[int, ...]) -> mf.Schedule:
    """Tiles of 32 x 32 of `turned`, read through shared memory, whose blocks follow one another so."""
    rows = BlockedLayout((1, 4), (4, 8), (4, 1), (2, 1), (1, 1))
    across = BlockedLayout((4, 1), (8, 4), (1, 4), (1, 2), (1, 1))
    return mf.Schedule((32, 32), rows, transposed=TransposedTiles(0, across), grid_order=order)

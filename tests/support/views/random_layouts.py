"""Seeded random functions that change the order of memory: any rank, permutation, small extents, windows, dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

import mlirfuse as mf

EXTENTS = (1, 2, 2, 3, 3, 4, 5, 7, 8, 14, 16, 20, 32, 33, 49, 64, 65, 130)
DTYPES = ("int8", "float16", "bfloat16", "float32", "float64", "bool", "float8_e4m3fn")
KINDS = ("permuted", "beside", "broadcast", "window", "flattened", "both ways", "strided")


@dataclass(frozen=True)
class RandomLayout:
    """A random function of small integers, which are exact.

    Attributes:
        seed: of the generator.
        kind: what the function does besides permuting, one of `KINDS`.
        most: elements of its largest array.
        dtype: of the arrays; None for a random one.
    """

    seed: int
    kind: str
    most: int = 1 << 14
    dtype: str | None = None

    def parts(self) -> tuple[tuple[int, ...], tuple[int, ...], str, tuple[int, ...]]:
        """The shape, the permutation, the dtype, and the axes that are reduced or broadcast."""
        rng = np.random.default_rng([self.seed, KINDS.index(self.kind)])
        rank = int(rng.integers(2, 7))
        shape = [int(n) for n in rng.choice(EXTENTS, rank)]
        while prod(shape) > self.most:
            d = int(np.argmax(shape))
            shape[d] = max(1, shape[d] // 2)
        order = tuple(int(n) for n in rng.permutation(rank))
        dtype = str(rng.choice(DTYPES))
        some = tuple(sorted(int(n) for n in rng.choice(rank, int(rng.integers(1, max(2, rank - 1))), replace=False)))
        return tuple(shape), order, self.dtype or dtype, some

    def arrays(self) -> list[np.ndarray]:
        """The arguments."""
        shape, order, dtype, some = self.parts()
        rng = np.random.default_rng(self.seed)

        def numbers(extents: tuple[int, ...]) -> np.ndarray:
            return rng.integers(0 if dtype == "bool" else -3, 2 if dtype == "bool" else 4, extents).astype(
                np.dtype(getattr(ml_dtypes, dtype, dtype))
            )

        x = numbers(shape)
        if self.kind == "strided":
            return [x.transpose(np.argsort(order))]
        if self.kind in ("beside", "both ways"):
            return [x, numbers(tuple(shape[d] for d in order))]
        if self.kind == "broadcast":
            return [x, numbers(tuple(1 if d in some else shape[d] for d in range(len(shape))))]
        return [x]

    def function(self, *arrays: Any) -> Any:
        """The formula, on traced tensors."""
        _, order, _, some = self.parts()
        wide = [mf.astype(a, mf.float32) for a in arrays]
        if self.kind == "beside":
            return mf.permute_dims(wide[0], order) + wide[1]
        if self.kind == "both ways":
            return mf.permute_dims(arrays[0], order), mf.permute_dims(wide[1], tuple(np.argsort(order))) - wide[0]
        if self.kind == "broadcast":
            return mf.permute_dims(wide[0] * 2 - wide[1], order)
        if self.kind == "window":
            return mf.max(wide[0], axis=some) + 1
        if self.kind == "flattened":
            return mf.reshape(mf.permute_dims(wide[0] * 2, order), (-1,))
        if self.kind == "strided":
            return wide[0] + 1
        return mf.permute_dims(mf.where(wide[0] > 0, arrays[0], arrays[0]), order)

    def expected(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results by NumPy."""
        _, order, _, some = self.parts()
        wide = [a.astype(np.float32) for a in arrays]
        if self.kind == "beside":
            return [wide[0].transpose(order) + wide[1]]
        if self.kind == "both ways":
            return [wide[0].transpose(order), wide[1].transpose(np.argsort(order)) - wide[0]]
        if self.kind == "broadcast":
            return [(wide[0] * 2 - wide[1]).transpose(order)]
        if self.kind == "window":
            return [wide[0].max(axis=some) + 1]
        if self.kind == "flattened":
            return [(wide[0] * 2).transpose(order).reshape(-1)]
        if self.kind == "strided":
            return [wide[0] + 1]
        return [wide[0].transpose(order)]

    def check(self, results: Any, arrays: list[np.ndarray]) -> None:
        """Raises `AssertionError` where results are wrong."""
        found = results if isinstance(results, tuple) else (results,)
        for result, wanted in zip(found, self.expected(arrays), strict=True):
            np.testing.assert_array_equal(np.asarray(result).astype(np.float64), wanted.astype(np.float64))

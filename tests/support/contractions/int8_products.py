"""Products of int8 in int32 that the interpreter's and the GPU's tests share, and their exact results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf


def widened(x, w):
    """Of operands that are widened before the product."""
    return x.astype(mf.int32) @ w.astype(mf.int32).mT


def asked(x, w):
    """Of a product that is asked for in int32."""
    return mf.matmul(x, w.mT, dtype=mf.int32)


def scaled(x, w, x_scale, w_scale):
    """With scales a row and a column."""
    return widened(x, w).astype(mf.float32) * x_scale * w_scale


def requantised(x, w):
    """To int8 again."""
    return mf.clip(mf.round(widened(x, w).astype(mf.float32) / 256.0), -127.0, 127.0).astype(mf.int8)


def total(x, w):
    """Of each row."""
    return mf.sum(widened(x, w), axis=-1)


@dataclass(frozen=True)
class Case:
    """A function of int8 (M, K) and (N, K), and extents.

    Attributes:
        fn: the function.
        m, n, k: the extents.
        batch: leading extents of both operands.
        tensor_cores: whether these multiply on every target.
    """

    fn: Callable[..., Any]
    m: int
    n: int
    k: int
    batch: tuple[int, ...] = ()
    tensor_cores: bool = True

    def __str__(self) -> str:
        return f"{self.fn.__name__}-{'x'.join(map(str, (*self.batch, self.m, self.n, self.k)))}"

    def inputs(self, seed: int) -> list[np.ndarray]:
        """All bytes occur, -128 with -128 among them."""
        rng = np.random.default_rng(seed)
        shapes = ((*self.batch, self.m, self.k), (*self.batch, self.n, self.k))
        arrays = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
        for array in arrays:
            array[..., 0, :] = -128
        if self.fn is scaled:
            arrays += [np.exp2(rng.integers(-9, 0, shape)).astype(np.float32) for shape in ((self.m, 1), (self.n,))]
        return arrays

    @property
    def specs(self) -> list[mf.TensorSpec]:
        """Of the inputs."""
        return [mf.TensorSpec(a.shape, a.dtype.name) for a in self.inputs(0)]

    def expected(self, inputs: list[np.ndarray]) -> np.ndarray:
        """In NumPy."""
        x, w = (a.astype(np.int32) for a in inputs[:2])
        sums = x @ np.swapaxes(w, -1, -2)
        if self.fn is scaled:
            return sums.astype(np.float32) * inputs[2] * inputs[3]
        if self.fn is requantised:
            return np.clip(np.round(sums.astype(np.float32) / np.float32(256)), -127, 127).astype(np.int8)
        return sums.sum(-1, dtype=np.int32) if self.fn is total else sums


CASES = [
    Case(widened, 64, 64, 256),
    Case(widened, 128, 192, 1024),
    Case(asked, 33, 100, 512),
    Case(asked, 16, 64, 2048),  # k is split
    Case(scaled, 130, 144, 272),
    Case(scaled, 200, 72, 64),
    Case(requantised, 96, 80, 128),
    Case(total, 64, 128, 160),
    Case(widened, 64, 32, 128, batch=(3,)),
    Case(widened, 17, 23, 100),  # rows of 4 bytes
    Case(widened, 9, 31, 37),  # rows of single bytes
]

"""Kernels whose blocks wait for each other, written by hand at the gpu stage, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np


def _serial_reduction(x: np.ndarray) -> np.ndarray:
    running = x[0]
    for row in x[1:]:
        running = running / 2 + row
    return running


def _grid_barrier(x: np.ndarray) -> np.ndarray:
    centred = x - x.sum(axis=0)
    return centred - centred.sum(axis=0)


EXPECTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "last_block": lambda x: x.sum(axis=0),
    "serial": _serial_reduction,
    "tickets": lambda x: x * 2,
    "grid_barrier": _grid_barrier,
}
"""Each protocol's function of a float64 array of shape (rows, 128)."""


TILE_PROGRAMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tile_sum": lambda x: x.sum(axis=0, keepdims=True),
    "tile_centre": lambda x: x - x.sum(axis=0),
}
"""The same at the tile stage, and of shape (rows, 256)."""

LAYOUTS = {
    "block": "{vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, "
    "repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}",
    "cluster": "{vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, "
    "repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}",
}
"""Layouts of a row of 256 elements, in the form of an attribute."""


def text(name: str) -> str:
    """The protocol's module: a host function of its name, and its kernel."""
    return (Path(__file__).parent / f"{name}.mlir").read_text()


def tile_program(name: str, layout: str) -> str:
    """One of `TILE_PROGRAMS` with one of `LAYOUTS`."""
    return f"#layout = {LAYOUTS[layout]}\n{text(name)}"


def integers(rows: int, seed: int = 0, columns: int = 128) -> np.ndarray:
    """float32 of shape (rows, columns): small integers, whose sums are exact in every order."""
    return np.random.default_rng(seed).integers(-8, 9, (rows, columns)).astype(np.float32)

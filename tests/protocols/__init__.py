"""Kernels whose blocks wait for each other, written by hand at the gpu stage, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np


def _turnstile(x: np.ndarray) -> np.ndarray:
    running = x[0]
    for row in x[1:]:
        running = running / 2 + row
    return running


def _grid_barrier(x: np.ndarray) -> np.ndarray:
    centred = x - x.sum(axis=0)
    return centred - centred.sum(axis=0)


EXPECTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "last_arriver": lambda x: x.sum(axis=0),
    "turnstile": _turnstile,
    "tickets": lambda x: x * 2,
    "grid_barrier": _grid_barrier,
}
"""Each protocol's function of a float64 array of shape (rows, 128)."""


def text(name: str) -> str:
    """The protocol's module: a host function of its name, and its kernel."""
    return (Path(__file__).parent / f"{name}.mlir").read_text()


def integers(rows: int, seed: int = 0) -> np.ndarray:
    """float32 of shape (rows, 128): small integers, whose sums are exact in every order."""
    return np.random.default_rng(seed).integers(-8, 9, (rows, 128)).astype(np.float32)

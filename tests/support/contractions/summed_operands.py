"""Products whose operands are computed of narrower arrays and summed up too, or joined of halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def weighted(xp: Any, q: Any, x: Any) -> Any:
    """Weighted means: the weights are whole numbers in bytes, which the product and the sums widen."""
    w = xp.astype(xp.abs(xp.astype(q, xp.int32)) % 4, xp.float32)
    return (w @ x) / xp.maximum(xp.sum(w, axis=1, keepdims=True), 1.0)


def squared(xp: Any, q: Any, x: Any) -> Any:
    """The operand's squares are summed up, of another cast of the same bytes."""
    w = xp.astype(q, xp.float32) * 0.125
    return w @ x, xp.sum(w * w, axis=0)


def unpacked(xp: Any, q: Any, x: Any) -> Any:
    """Halves of bytes, one beside the other, are an operand."""
    w = xp.astype(xp.concat([(q & 15) - 8, (q >> 4) & 15], axis=1), xp.float32)
    return w @ xp.concat([x, x * 2.0], axis=0)


def interleaved(xp: Any, q: Any, x: Any) -> Any:
    """Halves of bytes in turns are an operand."""
    w = xp.astype(xp.stack([(q & 15) - 8, (q >> 4) & 15], axis=-1).reshape((q.shape[0], 2 * q.shape[1])), xp.float32)
    return w @ xp.concat([x, x * 2.0], axis=0)


def outer(xp: Any, q: Any, x: Any) -> Any:
    """No argument has both dimensions of the operand, which no product can compute."""
    rows, columns = (xp.astype(each, xp.float32) for each in (q[:, 0], q[0]))
    w = rows[:, None] * 0.125 + columns[None, :]
    return w @ x, xp.sum(w, axis=0)


FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (weighted, squared, unpacked, interleaved, outer)}


def inputs(m: int, k: int, n: int) -> list[np.ndarray]:
    """Bytes, and float32 numbers that are multiples of 1/4, of which sums in float32 are exact."""
    rng = np.random.default_rng(0)
    return [rng.integers(-127, 128, (m, k)).astype(np.int8), (rng.integers(-8, 9, (k, n)) / 4).astype(np.float32)]


def check(found: Any, name: str, arrays: list[np.ndarray]) -> None:
    """Compares with NumPy in double precision."""
    expected = FUNCTIONS[name](np, arrays[0], arrays[1].astype(np.float64))
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for one, right in zip(found if isinstance(found, tuple | list) else (found,), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), right, rtol=1e-5, atol=1e-3)

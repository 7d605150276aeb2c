"""Functions of rows, and of all that is computed of the rows: losses, and what is logged beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf


def cosine_loss(a: Any, b: Any) -> Any:
    """The mean distance of the angles of rows, the sum of squared cosines, and the mean lengths of rows."""
    along = mf.sum(a * b, axis=-1)
    first, second = mf.sqrt(mf.sum(a * a, axis=-1)), mf.sqrt(mf.sum(b * b, axis=-1))
    cosine = along / (first * second)
    return mf.mean(1 - cosine), mf.sum(cosine * cosine), mf.mean(first), mf.mean(second)


def cross_entropy(x: Any, chosen: Any) -> Any:
    """Cross entropy with a penalty of the normaliser, and both for each row."""
    shifted = x - mf.max(x, axis=-1, keepdims=True)
    total = mf.log(mf.sum(mf.exp(shifted), axis=-1))
    loss = total - mf.sum(shifted * chosen, axis=-1)
    return mf.mean(loss), 0.1 * mf.mean(total * total), loss


def watched_layer_norm(x: Any) -> Any:
    """Normalised rows, and the means of their statistics."""
    mean = mf.mean(x, axis=-1, keepdims=True)
    variance = mf.var(x, axis=-1, keepdims=True)
    return (x - mean) * mf.rsqrt(variance + 1e-5), mf.mean(mean), mf.mean(variance)


@dataclass(frozen=True)
class Loss:
    """A function of arrays of one shape, and what it computes in float64."""

    fn: Callable[..., Any]
    arrays: int
    expected: Callable[..., Sequence[np.ndarray]]

    def inputs(self, rows: int, columns: int) -> list[np.ndarray]:
        """Arrays of float32 that are far from zero, the same for the same shape."""
        rng = np.random.default_rng(rows + columns)
        return [(rng.standard_normal((rows, columns)) + 0.5).astype(np.float32) for _ in range(self.arrays)]

    def check(self, results: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> None:
        """Compares results with those in float64."""
        expected = self.expected(*(array.astype(np.float64) for array in arrays))
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())


def _cosine_loss(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    first, second = np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1)
    cosine = (a * b).sum(-1) / (first * second)
    return (1 - cosine).mean(), (cosine * cosine).sum(), first.mean(), second.mean()


def _cross_entropy(x: np.ndarray, chosen: np.ndarray) -> Sequence[np.ndarray]:
    shifted = x - x.max(-1, keepdims=True)
    total = np.log(np.exp(shifted).sum(-1))
    loss = total - (shifted * chosen).sum(-1)
    return loss.mean(), 0.1 * (total * total).mean(), loss


def _watched_layer_norm(x: np.ndarray) -> Sequence[np.ndarray]:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5), mean.mean(), variance.mean()


LOSSES = {
    "cosine_loss": Loss(cosine_loss, 2, _cosine_loss),
    "cross_entropy": Loss(cross_entropy, 2, _cross_entropy),
    "watched_layer_norm": Loss(watched_layer_norm, 1, _watched_layer_norm),
}

"""Views of what is computed, and what is computed of these, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.harnesses.host_layouts import host_layout
from tests.support.pairwise import some
from tests.support.views.mixed_chains import MixedChain


@pytest.mark.parametrize("seed", some(range(600), 60))
def test_random_chains(seed: int) -> None:
    chain = MixedChain(seed)
    expected = chain(np, *[array.astype(np.float64) for array in chain.arrays])
    found = mf.fuse(lambda *arrays: chain(mf, *arrays), target="interpret")(*chain.arrays)
    for own, other in zip(found, expected, strict=True):
        scale = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(np.asarray(own), other, rtol=0, atol=2e-4 * scale)
    host_layout(lambda *arrays: chain(mf, *arrays), chain.arrays)


POOLED = {
    "rows": lambda xp, x: xp.max((x[2:] - x[:-2]).reshape(3, 2, 10), axis=1),
    "both": lambda xp, x: xp.max((x[:-2, 2:] - x[2:, :-2]).reshape(3, 2, 4, 2), axis=(1, 3)),
    "joined": lambda xp, x: xp.sum((x[2:] - x[:-2]).reshape(60), axis=0),
    "across": lambda xp, x: xp.max((x[2:] - x[:-2]).reshape(4, 15), axis=1),
}


@pytest.mark.parametrize("name", POOLED)
def test_reshaped_neighbours(name: str) -> None:
    """Overlapping slices are one view each, of another shape than what is reduced."""
    x = np.random.default_rng(0).standard_normal((8, 10)).astype(np.float32)
    found = mf.fuse(lambda x: POOLED[name](mf, x), target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), POOLED[name](np, x), rtol=1e-5, atol=1e-6)


def test_groups_of_interleaved_values() -> None:
    p = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    found = mf.fuse(
        lambda p: mf.sum(mf.exp(mf.stack([p, -p], axis=-1)).reshape(p.shape[0], 2, 8), axis=-1), target="interpret"
    )(p)
    wanted = np.exp(np.stack([p, -p], axis=-1)).reshape(2, 2, 8).sum(-1)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def test_edges_of_rows_that_all_threads_read() -> None:
    x = np.random.default_rng(0).standard_normal((12, 8, 2)).astype(np.float32)

    def widened(xp: Any, join: Any, x: Any) -> Any:
        v = join([x[:, :1], x, x[:, -1:]], axis=1)
        return xp.var(xp.broadcast_to(v[:, :, None, :], (12, 10, 3, 2)), axis=3)

    found = mf.fuse(lambda x: widened(mf, mf.concat, x), target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), widened(np, np.concatenate, x), rtol=1e-5, atol=1e-6)


def test_two_rounds_of_sliced_reductions() -> None:
    """Reducing slices of one array erases values that another one's slices were found of."""

    def losses(xp: Any, logits: Any, labels: Any, ids: Any) -> tuple[Any, Any]:
        logits = logits - xp.max(logits, axis=1, keepdims=True)
        logs = logits - xp.log(xp.sum(xp.exp(logits), axis=1, keepdims=True))
        p, hot = xp.exp(logs), (labels[:, None] == ids[None, :, None, None]).astype(np.float32)
        inter, total = xp.sum(p * hot, axis=(0, 2, 3)), xp.sum(p + hot, axis=(0, 2, 3))
        entropy, own = -xp.sum(logs * hot, axis=1), xp.sum(p * hot, axis=1)
        return xp.mean(own * entropy) + xp.mean(inter / total), total

    rng = np.random.default_rng(0)
    logits = rng.standard_normal((1, 2, 3, 1)).astype(np.float32)
    labels, ids = rng.integers(0, 2, (1, 3, 1)).astype(np.int32), np.arange(2, dtype=np.int32)
    found = mf.fuse(lambda *arrays: losses(mf, *arrays), target="interpret")(logits, labels, ids)
    for own, wanted in zip(found, losses(np, logits, labels, ids), strict=True):
        np.testing.assert_allclose(np.asarray(own), wanted, rtol=1e-5)


def test_joins_of_a_single_result_scaled_by_it() -> None:
    """A flipped minimum, joined with an array, and a factor of the whole that is computed of it: of rank 0."""

    def scaled(xp: Any, join: Any, x: Any, y: Any) -> Any:
        least = xp.min(y, axis=0, keepdims=True)[::-1]
        return xp.min(join([least, x]) * (least * 0.5 + 1.0), axis=0)

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(4).astype(np.float32) for _ in range(2))
    found = mf.fuse(lambda x, y: scaled(mf, mf.concat, x, y), target="interpret")(x, y)
    np.testing.assert_allclose(np.asarray(found), scaled(np, np.concatenate, x, y), rtol=1e-5)


def test_joins_of_constants() -> None:
    """What tells the parts apart is in no memory, as all of them are computed of nothing."""

    def shifted(xp: Any, x: Any) -> Any:
        zeros = xp.zeros_like(x[:, 0])
        return xp.stack([zeros + 1, zeros, zeros + 2], axis=-1) + x

    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    found = mf.fuse(lambda x: shifted(mf, x), target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), shifted(np, x), rtol=1e-6)


def test_a_join_of_a_result_and_an_array_read_twice() -> None:
    """The parts share no dimension but by the join, which reads a view of what one of them computes."""

    def added(xp: Any, join: Any, y: Any) -> Any:
        most = xp.permute_dims(xp.max(y, axis=(0, 1, 2), keepdims=True), (0, 2, 1))
        return most + join([most, y, y], axis=0)

    y = np.random.default_rng(0).standard_normal((1, 1, 1)).astype(np.float32)
    found = mf.fuse(lambda y: added(mf, mf.concat, y), target="interpret")(y)
    np.testing.assert_allclose(np.asarray(found), added(np, np.concatenate, y), rtol=1e-6)

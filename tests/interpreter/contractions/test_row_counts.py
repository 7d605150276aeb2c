"""Products at many numbers of rows: a handful of kernels, each right for all that it serves."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.argument_specs import numpy_specs
from mlirfuse.target import target_of

HOPPER = target_of("sm_90a")


def layer(x, w, b):
    return mf.matmul(x, w.mT, dtype=mf.float32) + b


def batch_sizes(count: int, most: int) -> list[int]:
    """As serving traffic has them: distinct, of every magnitude, in no order."""
    rng = random.Random(3)
    sizes: set[int] = set()
    while len(sizes) < count:
        sizes.add(max(2, int(2 ** rng.uniform(0, np.log2(most)))))
    found = sorted(sizes)
    rng.shuffle(found)
    return found


@pytest.mark.parametrize(("n", "k", "most"), [(4096, 4096, 11), (768, 3072, 14)])
def test_forty_batch_sizes_share_a_handful_of_kernels(n: int, k: int, most: int) -> None:
    """Without a GPU: what calls would compile."""
    fn = mf.fuse(layer, target="sm_90a")
    w, b = np.zeros((n, k), np.float16), np.zeros(n, np.float32)
    sizes, found = batch_sizes(40, 8192), {}
    for m in sizes:
        arrays = [np.zeros((m, k), np.float16), w, b]
        compiled = fn._compile(lambda extents, a=arrays: numpy_specs(a, extents, "xwb"), HOPPER)
        found.setdefault(id(compiled), []).append(m)
    assert len(found) <= most, list(found.values())
    again = [np.zeros((sizes[7], k), np.float16), w, b]
    compiled = fn._compile(lambda extents: numpy_specs(again, extents, "xwb"), HOPPER)
    assert sizes[7] in found[id(compiled)]


def test_results_are_right_at_every_number_of_rows() -> None:
    fn = mf.fuse(layer, target="interpret")
    rng = np.random.default_rng(0)
    w = rng.integers(-2, 3, (48, 80)).astype(np.float16)
    b = rng.integers(-9, 10, 48).astype(np.float32)
    for m in (5, 2, 7, 64, 33, 5, 100, 130, 1):
        x = rng.integers(-2, 3, (m, 80)).astype(np.float16)
        expected = x.astype(np.float32) @ w.astype(np.float32).T + b
        np.testing.assert_array_equal(fn(x, w, b), expected)
    assert len({id(compiled) for compiled in fn._compiled.values()}) <= 4


def test_other_extents_that_change_are_numbers() -> None:
    """Weights of another size, and two numbers at once."""
    fn = mf.fuse(lambda x, w: mf.matmul(x, w.mT, dtype=mf.float32), target="interpret")
    rng = np.random.default_rng(1)
    for m, n in ((16, 24), (16, 40), (8, 24), (8, 56), (24, 24), (40, 8)):
        x, w = (rng.integers(-2, 3, (rows, 32)).astype(np.float16) for rows in (m, n))
        np.testing.assert_array_equal(fn(x, w), x.astype(np.float32) @ w.astype(np.float32).T)


def test_numbers_of_rows_that_python_needs_stay_numbers() -> None:
    def mean_product(x, w):
        return (x @ w.mT) * (1.0 if x.shape[0] < 20 else 0.5)

    fn = mf.fuse(mean_product, target="interpret")
    rng = np.random.default_rng(2)
    w = rng.integers(-2, 3, (16, 32)).astype(np.float32)
    for m in (4, 12, 24, 40):
        x = rng.integers(-2, 3, (m, 32)).astype(np.float32)
        np.testing.assert_array_equal(fn(x, w), x @ w.T * (1.0 if m < 20 else 0.5))

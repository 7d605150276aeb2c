"""Joined, padded and shifted arrays, and what is computed of these, in any order, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.joined_chains import JoinedChain

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

LARGE = [1, 2, 8, 33, 127, 128, 129, 256, 1023, 1025, 4097]


@pytest.mark.parametrize("seed", range(150))
def test_random_chains(seed: int) -> None:
    chain = JoinedChain(seed)
    chain.check(_called(chain))


@pytest.mark.parametrize("seed", range(1000, 1050))
def test_random_chains_of_large_arrays(seed: int) -> None:
    chain = JoinedChain(seed, LARGE, 2_000_000)
    chain.check(_called(chain))


@pytest.mark.parametrize("seed", range(2000, 2030))
def test_random_chains_of_narrow_elements(seed: int) -> None:
    chain = JoinedChain(seed, LARGE, 2_000_000, ["int8", "bool"])
    chain.check(_called(chain))


def _called(chain: JoinedChain) -> list[np.ndarray]:
    arrays = [_on_gpu(array) for array in chain.arrays]
    found = mf.fuse(lambda *arrays: chain(mf, *arrays))(*arrays)
    return [cupy.asnumpy(each) for each in found]


def _on_gpu(array: np.ndarray) -> Any:
    """A copy with the same strides, whatever their signs, and 0 among them."""
    size, extents = array.dtype.itemsize, array.shape
    steps = [step if extent > 1 else 0 for step, extent in zip(array.strides, extents, strict=True)]
    ends = [(extent - 1) * step for extent, step in zip(extents, steps, strict=True)]
    start, count = sum(-end for end in ends if end < 0) // size, 1 + sum(map(abs, ends)) // size
    flat = np.zeros(count, array.dtype)
    np.lib.stride_tricks.as_strided(flat[start:], extents, steps)[...] = array
    return cupy.lib.stride_tricks.as_strided(cupy.asarray(flat)[start:], extents, steps)

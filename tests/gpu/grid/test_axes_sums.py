"""Sums over different axes of one array in one persistent loop, on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.axes_sums import EXPECTED, SHAPES, array, check
from tests.support.reductions.grid_persistent import with_known_rows

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_one_loop(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """Partials of a cluster's rows have several dimensions; the bits are the same again."""
    _check(function, mf.fuse(with_known_rows(function), mix_order="fused"), shape)


@pytest.mark.parametrize("shape", [*SHAPES, (256, 256, 256), (32, 512, 1024)], ids=str)
@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_dynamic_images(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """As calls compile them: of any number of images, in as few kernels as that allows."""
    _check(function, mf.fuse(function), shape)


def _check(function: Callable[..., Any], fused: mf.Fused, shape: tuple[int, ...]) -> None:
    x = array(shape)
    found = [[to_numpy(result) for result in fused(to_torch(x))] for _ in range(2)]
    check(function, found[0], x)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))

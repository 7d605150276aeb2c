"""Statistics over leading axes in one launch, which tiles may need again, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.grid_persistent import CASES, ONE_VISIT, check, in_rows, with_known_rows

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

SHAPES = [(25088, 64), (6272, 256), (100352, 64), (1568, 2048)]
"""Rows and channels of a residual network's images."""


def _check_twice(fused: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Calls a function twice, whose results are right, and the same bits."""
    arrays = CASES[name].inputs(shape, dtype, np.random.default_rng(sum(shape)))
    found = [fused(*map(to_torch, arrays)) for _ in range(2)]
    first, second = ([to_numpy(r) for r in (each if isinstance(each, tuple) else (each,))] for each in found)
    check(CASES[name], tuple(first), arrays)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", ["forward", "backward", "maximum", *ONE_VISIT])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_as_chosen(name: str, shape: tuple[int, int], dtype: str) -> None:
    """One kernel serves every number of rows, among them fewer and more than it was chosen for."""
    fused = mf.fuse(CASES[name].fn)
    for rows in (shape[0], 1, 33, shape[0] + 5, 4 * shape[0]):
        _check_twice(fused, name, (rows, shape[1]), dtype)


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize(("lanes", "warps", "repeats", "blocks"), [(2, 8, 4, 2), (4, 16, 2, 1), (8, 8, 1, 2)])
@pytest.mark.parametrize("name", ["forward", "backward", "moments", "log_sum_exp"])
def test_given_schedules(name: str, lanes: int, warps: int, repeats: int, blocks: int, kept: int) -> None:
    """Tiles that stay in shared memory all, some, or none; a slice of all columns, and several."""
    schedule = in_rows(64, vector=8, lanes=lanes, warps=warps, repeats=repeats, kept=kept, blocks=blocks)
    _check_twice(mf.fuse(with_known_rows(CASES[name].fn), schedule=schedule), name, (25088, 64), "float16")


@pytest.mark.parametrize("name", ["backward", "moments"])
def test_many_launches_leave_semaphores_zero(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRFUSE_CHECK_WORKSPACE", "1")
    fused = mf.fuse(CASES[name].fn)
    for rows in (25088, 1000, 3, 60000, 25088):
        _check_twice(fused, name, (rows, 64), "float16")
    arrays = [to_torch(a) for a in CASES[name].inputs((25088, 64), "float16", np.random.default_rng(1))]
    first = [to_numpy(r) for r in fused(*arrays)]
    for _ in range(200):
        last = fused(*arrays)
    assert all(np.array_equal(a, to_numpy(b)) for a, b in zip(first, last, strict=True))


def test_channels_outside() -> None:
    fused = mf.fuse(CASES["channels"].fn)
    for shape in ((32, 64, 56, 56), (64, 24, 28, 28), (3, 5, 12, 30)):
        _check_twice(fused, "channels", shape, "float16")


def test_captured_in_a_graph() -> None:
    """A cooperative launch in a CUDA graph, which is replayed."""
    case = CASES["forward"]
    fused = mf.fuse(case.fn)
    arrays = case.inputs((25088, 64), "float16", np.random.default_rng(2))
    inputs = [to_torch(a) for a in arrays]
    expected = [to_numpy(r) for r in fused(*inputs)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = fused(*inputs)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert all(np.array_equal(a, to_numpy(b)) for a, b in zip(expected, results, strict=True))

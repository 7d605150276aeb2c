"""Column tiles that blocks or clusters hold, with lanes along the reduced dimension, and their warps' partials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at

ROWS, COLUMNS = 300, 40


def softmax(x: Any) -> Any:
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=1, keepdims=True))
    return e / mf.sum(e, axis=1, keepdims=True)


def normalised(x: Any) -> Any:
    h = x.astype(mf.float32)
    d = h - mf.mean(h, axis=1, keepdims=True)
    return d / mf.sqrt(mf.mean(d * d, axis=1, keepdims=True) + 1e-3)


def divided(x: Any) -> Any:
    h = x.astype(mf.float32)
    return h / mf.sum(mf.abs(h), axis=1, keepdims=True)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def _normalised(x: np.ndarray) -> np.ndarray:
    d = x - x.mean(1, keepdims=True)
    return np.asarray(d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-3))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (softmax, _softmax),
    "normalised": (normalised, _normalised),
    "divided": (divided, lambda x: x / np.abs(x).sum(1, keepdims=True)),
}


@pytest.mark.parametrize(
    ("warps", "cluster", "lanes"),
    [(8, 1, 8), (6, 1, 8), (16, 1, 4), (12, 1, 8), (8, 2, 8), (5, 4, 8), (32, 1, 4)],
    ids=str,
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_column_tiles(name: str, warps: int, cluster: int, lanes: int) -> None:
    fn, exact = FUNCTIONS[name]
    columns = 32 // lanes
    repeats = -(-ROWS // (lanes * warps * cluster))
    layout = mf.BlockedLayout((1, 1, 8), (1, lanes, columns), (1, warps, 1), (1, repeats, 1), (1, cluster, 1))
    schedule = mf.Schedule((1, ROWS, min(COLUMNS, 8 * columns)), layout, order="depth")
    x = np.random.default_rng(1).standard_normal((2, ROWS, COLUMNS)).astype(np.float16)
    module = module_at("gpu", fn, [mf.TensorSpec((None, ROWS, COLUMNS), mf.float16)], schedule)
    (result,) = interpreter.run(module, fn.__name__, [x], order="random", seed=2)
    np.testing.assert_allclose(result, exact(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


def test_what_warps_exchange_fits_beside_what_is_spilled() -> None:
    """Columns that 25 warps hold, which spill to shared memory 230 KB of them and exchange 13 KB."""

    def fn(x: Any, y: Any, z: Any) -> Any:
        h = (x - y) * z.T + 1
        e = mf.exp(h - mf.max(h, axis=0, keepdims=True))
        return e / mf.sum(e, axis=0, keepdims=True)

    rng = np.random.default_rng(1)
    x, y, z = (rng.standard_normal(shape).astype(np.float32) for shape in ((1100, 40), (1100, 40), (40, 1100)))
    result = np.asarray(mf.fuse(fn, target="interpret")(x, y, z))
    np.testing.assert_allclose(result[None], _softmax(((x - y) * z.T)[None].astype(np.float64)), rtol=1e-4, atol=1e-5)

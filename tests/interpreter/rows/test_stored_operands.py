"""Functions of single elements that pairs share, stored by kernels of their own, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.kernels import kernels
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.harnesses.compiling import module_at

SHAPES = (6, 20), (9, 20)


def _root(xp: Any, x: Any) -> Any:
    """Of whole numbers, exactly."""
    return xp.sqrt(x * x)


FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "both": (lambda xp, x, y: xp.sum(_root(xp, x)[:, None] - _root(xp, y)[None], axis=-1), 3),
    "one": (lambda xp, x, y: xp.max(_root(xp, x)[:, None] + y[None], axis=-1), 2),
    "read as it is too": (lambda xp, x, y: xp.sum(x[:, None] * (_root(xp, x)[:, None] - y[None]), axis=-1), 2),
    "returned too": (lambda xp, x, y: (_root(xp, x), xp.sum(_root(xp, x)[:, None] - y[None], axis=-1)), 2),
    "of rows": (lambda xp, x, y: _root(xp, xp.sum(x, axis=-1))[:, None] + xp.max(y, axis=-1)[None], 4),
    "elements": (lambda xp, x, y: _root(xp, x)[:, None] + y[None], 2),
}
"""Functions of rows of two arrays, and the kernels that each becomes."""


@pytest.mark.parametrize("rows", ["static", "dynamic"])
@pytest.mark.parametrize("name", FORMS)
def test_stored(name: str, rows: str) -> None:
    form, count = FORMS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in SHAPES]

    def pairs(x: Any, y: Any) -> Any:
        return form(mf, x, y)

    specs = [mf.TensorSpec((None if rows == "dynamic" else n, k), "float32") for n, k in SHAPES]
    module = module_at("linalg", pairs, specs)
    text = pipeline.named("fuse-gpu-pipeline").replace("fuse-store-operands", "fuse-store-operands{always=true}")
    with module.context:
        run_pipeline(module, text)
        assert len(list(kernels(module.operation))) == 0  # all are one thread's code
        assert str(module).count("gpu.func @") == count
        found = interpreter.run(module, "pairs", arrays)
    expected = form(np, *(a.astype(np.float64) for a in arrays))
    for one, right in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_array_equal(np.asarray(one, np.float64), right)


def test_rows_share_what_a_row_is_multiplied_by() -> None:
    """The functions of one row of angles are computed once, by a kernel in front."""

    def shared(x: Any, angles: Any) -> Any:
        weights = angles
        for _ in range(6):
            weights = mf.cos(mf.sin(weights))
        return mf.sum(x * weights, axis=1)

    rng = np.random.default_rng(0)
    x, angles = (rng.standard_normal(shape).astype(np.float32) for shape in ((6000, 365), (365,)))
    module = module_at("gpu", shared, [mf.TensorSpec(each.shape, "float32") for each in (x, angles)])
    assert str(module).count("gpu.func @") == 2
    (found,) = interpreter.run(module, "shared", [x, angles])
    weights = angles.astype(np.float64)
    for _ in range(6):
        weights = np.cos(np.sin(weights))
    np.testing.assert_allclose(found, x @ weights, rtol=1e-4, atol=1e-4)

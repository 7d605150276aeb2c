"""Gradients that are divided by a sum which no row is needed for: the sum comes first, and rows are read once."""

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


def masked_loss(xp: Any, x: Any, m: Any) -> Any:
    """The number of masked rows divides the loss and the gradients."""
    n = xp.sum(m) + 1.0
    per = xp.sum(x * x, axis=-1)
    return xp.sum(per * m) / n, x * (2.0 * m / n)[:, None] / (1.0 + per)[:, None]


def two_sums(xp: Any, x: Any, m: Any) -> Any:
    """Both sums of the mask come first."""
    per = xp.max(x, axis=-1, keepdims=True)
    total, most = xp.sum(m * m), xp.max(m)
    return (x - per) * total + most, xp.sum(per[:, 0] * m) / total


def dependent(xp: Any, x: Any, m: Any) -> Any:
    """The sum is of the rows' own: it cannot come first."""
    per = xp.sum(x * x, axis=-1)
    n = xp.sum(per * m) + 1.0
    return x / n, per


FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "masked loss": (masked_loss, 3),
    "two sums": (two_sums, 3),
    "dependent": (dependent, 3),
}
"""Functions of rows and a mask, and the kernels that `fuse-segment` makes of them."""


def form_of(form: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, m: Any) -> Any:
        return form(mf, x, m)

    return call


@pytest.mark.parametrize("rows", [13, None])
@pytest.mark.parametrize("name", FORMS)
def test_rows_and_sums_of_a_mask(name: str, rows: int | None) -> None:
    form, count = FORMS[name]
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((13, 40), np.float32), (rng.random(13) < 0.7).astype(np.float32)
    specs = [mf.TensorSpec((rows, 40), "float32"), mf.TensorSpec((rows,), "float32")]
    module = module_at("linalg", form_of(form), specs)
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS), stop_after="fuse-segment")
        assert len(list(kernels(module.operation))) == count
        found = interpreter.run(module, "call", [x, m])
    for actual, expected in zip(found, form(np, x.astype(np.float64), m), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_what_only_elements_need_is_not_taken_apart() -> None:
    """Returns of each step are of those of the steps behind it: casts that several steps read run where these do."""

    def call(r: Any, v: Any, done: Any) -> Any:
        kept, last, out = 1.0 - mf.astype(done, mf.float32), r[0] * 0.0, []
        for step in range(15, -1, -1):
            last = r[step] + 0.9 * v[step + 1] * kept[step] - v[step] + 0.8 * kept[step] * last
            out.append(last)
        returns = mf.stack(out[::-1], axis=0)
        return (returns - mf.mean(returns)) / (mf.std(returns) + 1e-3), returns + v[:-1]

    specs = [mf.TensorSpec((n, 8192), dtype) for n, dtype in ((16, "float32"), (17, "float32"), (16, "bool"))]
    module = module_at("linalg", call, specs)
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS), stop_after="fuse-segment")
        assert len(list(kernels(module.operation))) == 2

"""Results beside a product's that lack its rows, its columns or both: one block of several writes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from tests.support.harnesses.compiling import specs_of

IN_SLICES = ("grid_sync", "flagged", "cluster")


def scaled(x: mf.Tensor, w: mf.Tensor, z: mf.Tensor, s: mf.Tensor, r: mf.Tensor) -> tuple[mf.Tensor, ...]:
    return (x @ w) * z * s * r, mf.sqrt(mf.abs(z) + 1), s * 2, r * 3


@pytest.mark.parametrize("split", [2, 4])
@pytest.mark.parametrize("reduction", ["last_block", "serial", *IN_SLICES])
def test_results_that_lack_dimensions_are_written_once(reduction: str, split: int) -> None:
    rng = np.random.default_rng(0)
    shapes = ((40, 512), (512, 72), (), (72,), (40, 1))
    x, w, _, s, r = (rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes)
    arrays = [x, w, z := np.array(3, np.float16), s, r]
    chosen = mf.fuse(scaled, target="sm_90a").lower(*specs_of(arrays)).compile().schedules
    ((kernel, base),) = chosen.items()
    assert base.contraction is not None
    schedule = replace(base, contraction=replace(base.contraction, split=split, reduction=reduction))
    schedule = with_slices(schedule, reduction) if reduction in IN_SLICES else schedule
    fused = mf.fuse(scaled, target="sm_90a", schedule={kernel: schedule})
    module = fused.lower(*specs_of(arrays)).compile().module_at("gpu")
    product, *others = interpreter.run(module, "scaled", arrays, order="random", seed=split)
    expected = (x.astype(np.float64) @ w) * float(z) * s * r
    np.testing.assert_allclose(np.asarray(product, np.float64), expected, rtol=1e-2, atol=1e-2)
    for found, want in zip(others, (np.float16(2), s * 2, r * 3), strict=True):
        np.testing.assert_array_equal(np.asarray(found), want)

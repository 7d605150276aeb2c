"""What follows a product on Hopper runs on the consumers: bias, activation, residual, scales, wider results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.contractions.warpgroup_epilogues import CASES, epilogue_inputs
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import combined

SCHEDULES = {
    "tiles": warpgroup_schedule(128, 64),
    "persistent": warpgroup_schedule(128, 64, persistent=True),
    "two blocks": warpgroup_schedule(128, 64, blocks_per_sm=2),
    "two blocks, persistent": warpgroup_schedule(128, 64, persistent=True, blocks_per_sm=2),
    "consumer_groups": warpgroup_schedule(128, 64, consumer_groups=2),
    "consumer groups, fragment by fragment": replace(warpgroup_schedule(128, 64, consumer_groups=2), order="depth"),
}


@combined({"name": CASES, "schedule": SCHEDULES}, turns={"stage": ["tile", "gpu"]})
def test_epilogues(name: str, schedule: str, stage: str) -> None:
    fn, _, reference = CASES[name]
    inputs = epilogue_inputs(name)
    specs = [mf.TensorSpec(array.shape, "float16") for array in inputs]
    expected = reference(*(a.astype(np.float64) for a in inputs))
    module = module_at(stage, fn, specs, SCHEDULES[schedule])
    assert "fuse.warpgroup_mma" in str(module)
    results = interpreter.run(module, fn.__name__, inputs, order="random")
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.astype(np.float64), want)


def test_several_results_have_subtiles_each() -> None:
    """Consumer groups leave memory for both, and neither is stored from the accumulators' layout."""

    def both(x: mf.Tensor, w: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
        h = x @ w
        return h * mf.sigmoid(h), mf.astype(h, mf.float32)

    specs = [mf.TensorSpec((4096, 4096), "float16")] * 2
    text = str(module_at("gpu", both, specs))
    stored = {
        line.split("fuse.async_store")[1].split(",")[0] for line in text.splitlines() if '"fuse.async_store"' in line
    }
    assert len(stored) == 2

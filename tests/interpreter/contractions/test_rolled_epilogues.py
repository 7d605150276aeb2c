"""Loops over the accumulators of a thread compute what unrolled code does, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.passes.gpu import roll_stores
from tests.support.contractions.heavy_epilogues import FUNCTIONS, SCHEDULES, inputs_of
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined


@combined({"schedule": SCHEDULES}, turns={"name": FUNCTIONS})
def test_loops_compute_what_unrolled_code_does(schedule: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, inputs = FUNCTIONS[name], inputs_of(name, 264, 168, 72)
    results = []
    for long in (0, 10**9):
        monkeypatch.setattr(roll_stores, "LONG", long)
        module = module_at("gpu", fn, specs_of(inputs), SCHEDULES[schedule])
        assert ("fuse.stage_columns" in str(module)) == (long == 0)
        results.append(interpreter.run(module, name, inputs, order="random")[0])
    assert np.isfinite(results[0].astype(np.float64)).all()
    np.testing.assert_array_equal(*results)

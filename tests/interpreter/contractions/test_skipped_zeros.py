"""Strided data gradients, whose residue classes meet fewer taps than others: loops along k end with the last one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirfuse import interpreter
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.convolutions import Case, integers, passes
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined

EVEN = ((1, 1), (1, 1))

CASES = [
    Case(2, (6, 6), 64, 64, (3, 3), (2, 2), EVEN, (1, 1)),
    Case(2, (7, 9), 128, 64, (3, 5), (2, 2), ((1, 1), (2, 2)), (1, 1)),
    Case(1, (9, 10), 64, 64, (5, 4), (3, 2), EVEN, (1, 1)),
]

GRIDS: list[dict[str, Any]] = [{}, {"persistent": True}, {"consumer_groups": 2}, {"consumer_groups": 2, "stages": 3}]


@combined({"case": CASES, "grid": GRIDS, "columns": [64, 128]})
def test_grids(case: Case, grid: dict[str, Any], columns: int) -> None:
    """Ping-pong consumer groups skip as many steps as the tiles of the other groups have; tiles of several classes take
    all steps.
    """
    function, numbers, reference = passes(case, None)["dgrad"]
    arrays = [integers(np.random.default_rng(3), case.shapes[n], np.float16) // 2 for n in numbers]
    module = module_at("gpu", function, specs_of(arrays), warpgroup_schedule(64, columns, **grid))
    assert "fuse.async_load" in str(module)
    (found,) = interpreter.run(module, "lambda", arrays, order="random", seed=1)
    assert (found == reference(case, *(array.astype(np.int64) for array in arrays))).all()


def test_steps_that_are_skipped_read_nothing() -> None:
    """The infinite middle tap makes no NaN in pixels of classes that do not meet it, in no step either."""
    case = CASES[0]
    function, _, _ = passes(case, None)["dgrad"]
    dy, w = np.ones((2, 3, 3, 64), np.float16), np.zeros((64, 3, 3, 64), np.float16)
    w[:, 1, 1] = np.inf
    module = module_at("gpu", function, specs_of([dy, w]), warpgroup_schedule(64, 64))
    (found,) = interpreter.run(module, "lambda", [dy, w])
    assert np.isposinf(found[:, ::2, ::2]).all()
    assert np.isfinite(found[:, 1::2, :]).all()

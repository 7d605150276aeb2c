"""Reductions over random axes in random memory orders, by schedules that stream what is reduced."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from tests.support.reductions.streamed import random_case, streamed_modules


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_same_as_numpy(seed: int, dynamic: bool) -> None:
    case = random_case(seed)
    for schedule, module in streamed_modules(case, 2, "gpu", dynamic=dynamic, seed=seed):
        name = case.function().__name__
        for found, exact in zip(interpreter.run(module, name, [case.array()]), case.expected(), strict=True):
            np.testing.assert_array_equal(found, exact.astype(found.dtype), str((case, schedule)))

"""Reductions over pairs of rows, by threads with register tiles of results."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from tests.support.reductions.pairs import random_pairs, register_tile_modules


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_same_as_numpy(seed: int, dynamic: bool) -> None:
    case = random_pairs(seed)
    for schedule, module in register_tile_modules(case, 2, "gpu", dynamic=dynamic, seed=seed):
        for found, exact in zip(interpreter.run(module, "pairs", case.arrays()), case.expected(), strict=True):
            np.testing.assert_array_equal(found, exact.astype(found.dtype), str((case, schedule)))


def test_most_cases_have_register_tiles() -> None:
    """So that the test above tests them."""
    cases = [random_pairs(seed) for seed in range(24)]
    assert sum(bool(list(register_tile_modules(case, 1, "tile", dynamic=False))) for case in cases) >= 16

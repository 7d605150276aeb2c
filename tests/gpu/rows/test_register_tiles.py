"""Reductions over pairs of rows on the GPU: as chosen, and with register tiles of results."""

from __future__ import annotations

import pytest

from mlirfuse.schedule.rows.register_tiles import register_tile_schedules
from tests.support.gpu.trials import check_schedules
from tests.support.reductions.pairs import random_pairs

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(30))
def test_same_as_numpy(seed: int) -> None:
    case = random_pairs(seed, (2, 3, 16, 33, 64, 100, 130))
    arrays = [cupy.asarray(array) for array in case.arrays()]
    check_schedules(case.function, arrays, case.expected(), register_tile_schedules, seed)

"""Reductions over random axes in random memory orders, by schedules that stream what is reduced, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.schedule.rows.streamed import streamed_schedules
from tests.support.gpu.trials import check_schedules
from tests.support.reductions.streamed import random_case

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(30))
def test_same_as_numpy(seed: int) -> None:
    case = random_case(seed, largest=1 << 22)
    host = case.array()
    array = cupy.asarray(np.ascontiguousarray(host.transpose(case.order))).transpose(np.argsort(case.order))
    assert array.strides == host.strides
    check_schedules(case.function(), [array], case.expected(), streamed_schedules, seed)

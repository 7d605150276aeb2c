"""Equal inputs give equal bits, run after run, and several results of one kernel NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.numerics import FAMILIES
from tests.support.views.shared_reads import SHARED_READS

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("columns", [768, 5140, 65536, 131072])
@pytest.mark.parametrize("name", FAMILIES)
def test_results_are_reproducible(name: str, columns: int) -> None:
    family = FAMILIES[name]
    fused = mf.fuse(family.fn)
    arrays = [cupy.asarray(a) for a in family.inputs(67, columns, "float32")]
    first = fused(*arrays)
    for _ in range(100):
        assert bool((fused(*arrays).view(cupy.uint32) == first.view(cupy.uint32)).all())


@pytest.mark.parametrize("name", SHARED_READS)
def test_results_that_share_reads(name: str) -> None:
    case = SHARED_READS[name]
    inputs = case.inputs(67, 1001)
    results = mf.fuse(case.fn)(*map(cupy.asarray, inputs))
    for result, expected in zip(results, case.fn(*inputs), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(result), expected)

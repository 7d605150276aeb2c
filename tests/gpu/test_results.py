"""Equal inputs give equal bits, run after run."""

from __future__ import annotations

import pytest
from numerics import FAMILIES

import mlirfuse as mf

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

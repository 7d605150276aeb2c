"""Operands that are summed up beside a product, or joined of halves, on a GPU."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.contractions.summed_operands import FUNCTIONS, check, inputs

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("shape", [(33, 48, 24), (512, 20000, 8), (1024, 2048, 512)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, shape: tuple[int, int, int]) -> None:
    arrays = inputs(*shape)
    found = mf.fuse(lambda q, x: FUNCTIONS[name](mf, q, x))(*map(cupy.asarray, arrays))
    check([cupy.asnumpy(one) for one in (found if isinstance(found, tuple) else (found,))], name, arrays)

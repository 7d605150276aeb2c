"""Rows that blocks ask the L2 for, more of them than the device works on at a time: numbers against float64."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.harnesses.compiling import row_schedule
from tests.support.reductions.numerics import DTYPES, FAMILIES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

ROWS = 5003
"""A prime: no number of rows a tile divides it, and several waves of blocks are needed for it."""


@pytest.mark.parametrize("columns", [8, 257, 1000, 1600, 4096, 5140])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_chosen_schedules(name: str, dtype: str, columns: int) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(ROWS, columns, DTYPES[dtype])
    tensors = [to_torch(a) for a in inputs]
    out = torch.full_like(tensors[0], float("nan"))
    mf.fuse(family.fn)(*tensors, out=out)
    family.check(to_numpy(out), inputs)


def test_blocks_of_a_cluster_share_rows_out() -> None:
    family = FAMILIES["layer_norm"]
    inputs = family.inputs(ROWS, 1000, DTYPES["float16"])
    schedule = row_schedule(1000, vector=8, warps=1, cluster=4)
    compiled = mf.fuse(family.fn, schedule=schedule).lower(*family.specs(None, 1000, DTYPES["float16"])).compile()
    assert "cp.async.bulk.prefetch.L2" in compiled.as_text("ptx")
    result = mf.fuse(family.fn, schedule=schedule)(*(to_torch(a) for a in inputs))
    family.check(to_numpy(result), inputs)

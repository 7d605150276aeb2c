"""Rows whose results are contiguous along the rows' numbers: several of them are a warp's."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.target import SECTOR
from tests.support.views.transposes import ROWS


@pytest.mark.parametrize("name", ["half precision", "single precision", "two reduced dimensions"])
def test_lanes_along_neighbouring_rows_fill_sectors(name: str) -> None:
    """Of 8192 rows; a warp that stored each alone would write a sector for each element."""
    case = ROWS[name]
    ((_, *row),) = case.shapes
    compiled = mf.fuse(case.fn, target="sm_90a").lower(mf.TensorSpec((8192, *row), case.dtype)).compile()
    (schedule,) = compiled.schedules.values()
    narrowest = 4 if name == "single precision" else 2
    assert schedule.layout.lanes[0] * schedule.layout.vector[0] * narrowest >= SECTOR

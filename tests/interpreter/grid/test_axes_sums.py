"""Sums over different axes of one array, whose partials have several dimensions, in one persistent loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.api.options import GridReductionKind
from mlirfuse.interpreter import run
from mlirfuse.target import target_of
from tests.support.reductions.axes_sums import EXPECTED, SHAPES, array, check

FEW_SMS = target_of("sm_90a").with_sms(16)


@pytest.mark.parametrize("grid_reduction", ["auto", "grid_sync", "last_block"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_one_loop(function: Callable[..., Any], shape: tuple[int, ...], grid_reduction: GridReductionKind) -> None:
    """The second stage has slices of all that is kept, by all blocks or by the last one."""
    fused = mf.fuse(function, target=FEW_SMS, mix_order="fused", grid_reduction=grid_reduction)
    compiled = fused.lower(mf.TensorSpec(shape, mf.float32)).compile_to_interpret()
    *_, schedule = compiled.schedules.values()  # statistics may have a kernel of their own
    assert schedule.persistent_loop is not None
    x = array(shape)
    check(function, run(compiled.interpreted, compiled.program.name, [x], sms=16, order="random"), x)

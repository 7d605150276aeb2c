"""Tiles that an epilogue reads come through the shared memory of its result, on a GPU."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.contractions.residuals import (
    SCHEDULES,
    argument_stages,
    gate,
    later_result,
    masked,
    residual,
    residual_inputs,
    residual_results,
    single,
    swapped,
    two_results,
)
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.gpu.torch_arrays import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="no Hopper GPU"
    ),
]

SIZES = ((648, 200, 72), (8, 72, 8), (4104, 2040, 520))


def check(fn, schedule, m, n, k):
    inputs = residual_inputs(fn, m, n, k)
    expected = residual_results(fn, inputs)
    fused = mf.fuse(fn, schedule=schedule)
    arrays = [torch.from_numpy(array).cuda() for array in inputs]
    for _ in range(3):
        results = fused(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        for result, want in zip(results, expected, strict=True):
            assert torch.equal(result.cpu(), torch.from_numpy(want).to(result.dtype)), (m, n, k)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("fn", [residual, gate], ids=lambda fn: fn.__name__)
def test_tiles_come_through_the_stages_of_results(fn, schedule):
    for m, n, k in SIZES:
        check(fn, SCHEDULES[schedule], m, n, k)


@pytest.mark.parametrize("schedule", [*SCHEDULES, None])
def test_tiles_of_other_types_are_prefetched(schedule):
    for m, n, k in ((648, 208, 72), (8, 80, 8), (4104, 2048, 520), (130, 200, 64)):
        check(masked, SCHEDULES[schedule] if schedule else None, m, n, k)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("grid", [{}, {"persistent": True}, {"consumer_groups": 2}], ids=str)
def test_tiles_of_other_types_have_stages_of_their_own(grid, transposed):
    schedule = argument_stages(warpgroup_schedule(64, 128, stages=3, **grid))
    for m, n, k in ((648, 208, 72), (8, 80, 8), (4104, 2048, 520), (130, 200, 64)):
        check(masked, swapped(schedule) if transposed else schedule, m, n, k)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("grid", [{}, {"persistent": True}, {"consumer_groups": 2}], ids=str)
def test_wide_results_have_a_stage_for_each_subtile(grid, transposed):
    schedule = argument_stages(warpgroup_schedule(64, 128, stages=3, **grid))
    for m, n, k in ((648, 208, 72), (8, 80, 8), (4104, 2048, 520), (128, 200, 64)):
        check(single, swapped(schedule) if transposed else schedule, m, n, k)


@pytest.mark.parametrize("grid", [{}, {"persistent": True}, {"consumer_groups": 2}], ids=str)
@pytest.mark.parametrize("fn", [single, two_results, later_result], ids=lambda fn: fn.__name__)
def test_wider_and_several_results(fn, grid):
    for m, n, k in SIZES:
        check(fn, warpgroup_schedule(64, 64, **grid), m, n, k)


@pytest.mark.parametrize(("m", "n", "k"), [(4096, 4096, 256), (512, 4096, 1024), (1024, 1024, 1024), (256, 4096, 512)])
def test_chosen_schedules(m, n, k):
    for fn in (residual, gate):
        check(fn, None, m, n, k)

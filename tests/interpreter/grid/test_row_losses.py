"""Reductions of what rows are reduced to, in the kernel that reduces the rows."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.interpreter import run
from tests.support.reductions.row_losses import LOSSES


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("columns", [200, 256])
def test_one_kernel_for_any_number_of_rows(name: str, columns: int) -> None:
    """Blocks with one tile, several or none, in any order."""
    loss = LOSSES[name]
    specs = [mf.TensorSpec(("n", columns), mf.float32)] * loss.arrays
    compiled = mf.fuse(loss.fn, target="sm_90a").lower(*specs).compile_to_interpret()
    (schedule,) = compiled.schedules.values()
    assert schedule.persistent_loop is not None
    for rows in (1, 5, 301):
        arrays = loss.inputs(rows, columns)
        loss.check(run(compiled.interpreted, compiled.program.name, arrays, sms=4, order="random"), arrays)


def test_separate_kernels_on_request() -> None:
    """A caller who wants reductions in different orders apart gets the same numbers."""
    loss = LOSSES["cosine_loss"]
    specs = [mf.TensorSpec(("n", 64), mf.float32)] * loss.arrays
    fused = mf.fuse(loss.fn, target="sm_90a", mix_order="split")
    compiled = fused.lower(*specs).compile_to_interpret()
    assert len(compiled.schedules) > 1
    arrays = loss.inputs(77, 64)
    loss.check(run(compiled.interpreted, compiled.program.name, arrays, sms=4, order="random"), arrays)


@pytest.mark.parametrize(("name", "columns"), [("cosine_loss", 768), ("watched_layer_norm", 768)])
def test_one_kernel_for_several_numbers_of_known_rows(name: str, columns: int) -> None:
    """A mean alone would not be worth a loop of the grid, several are."""
    loss = LOSSES[name]
    specs = [mf.TensorSpec((512, columns), mf.float32)] * loss.arrays
    compiled = mf.fuse(loss.fn, target="sm_90a").lower(*specs).compile_to_interpret()
    (schedule,) = compiled.schedules.values()
    assert schedule.persistent_loop is not None
    arrays = loss.inputs(512, columns)
    loss.check(run(compiled.interpreted, compiled.program.name, arrays, sms=16, order="random"), arrays)

"""Where kernels are merged, as the predicted time of one is less than of two."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.api.options import GridReductionKind
from mlirfuse.target import target_of
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES

HOPPER = target_of("sm_90a")


def launches_of(rows: int, columns: int) -> int:
    """Kernels of a norm's gradients: a reduction inside of rows, and one over them."""
    backward = BACKWARD["rms_norm_backward"]
    specs = [mf.TensorSpec(a.shape, a.dtype) for a in backward.inputs(2, columns, DTYPES["bfloat16"])]
    sized = [mf.TensorSpec((rows, *s.shape[1:]) if s.shape[0] == 2 else s.shape, s.dtype) for s in specs]
    return len(mf.fuse(backward.fn, target=HOPPER).lower(*sized).compile(choose_again=False).schedules)


@pytest.mark.parametrize("columns", [1024, 4096, 16384, 65536])
def test_many_rows_are_read_once(columns: int) -> None:
    assert launches_of((1 << 27) // columns, columns) == 1


def test_few_long_rows_are_not_worth_their_partial_results() -> None:
    """H200, us of one kernel and two: 2 rows 6.0 and 3.8, 16 rows 8.2 and 5.6, 64 rows 13.2 and 15.8."""
    assert [launches_of(rows, 65536) for rows in (2, 16, 64, 128)] == [2, 2, 1, 1]


@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block", "second_kernel", "atomics"])
def test_who_says_how_a_loop_ends_gets_one(grid_reduction: GridReductionKind) -> None:
    """Two rows of 65536 columns are faster in two kernels, of which none has such an end."""
    backward = BACKWARD["rms_norm_backward"]
    specs = [mf.TensorSpec(a.shape, a.dtype) for a in backward.inputs(2, 65536, DTYPES["bfloat16"])]
    requests: tuple[GridReductionKind, ...] = ("auto", grid_reduction)
    made = [
        mf.fuse(backward.fn, target="sm_90a", grid_reduction=request).lower(*specs).compile() for request in requests
    ]
    assert [len(compiled.resources) for compiled in made] == [2, 2 if grid_reduction == "second_kernel" else 1]
    assert "one kernel is predicted" in made[0].explain(verbose=True)
    assert "one kernel is predicted" not in made[1].explain(verbose=True)

"""When one kernel takes less time than two."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.api.options import GridReductionKind
from mlirfuse.schedule.fusion_gain import fusion_gain
from mlirfuse.schedule.heuristics import choose_schedule
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.target import target_of
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES

HOPPER = target_of("sm_90a")
SHARED_BYTES = 4  # two inputs in half precision


def gain(rows: int, columns: int) -> float:
    """Microseconds, of one kernel for what is a reduction inside of rows and a sum over them."""
    persistent_loop = PersistentLoopProblem(
        (0,), frozenset({1}), accumulator_bytes=4, column_bytes=2, inner=True, row_bytes=4
    )
    one = Problem(
        (rows, columns),
        frozenset({0, 1}),
        1,
        8,
        6,
        4,
        live_bytes=4,
        column_bytes=2,
        dependent_reductions=1,
        persistent_loop=persistent_loop,
    )
    inside = Problem((rows, columns), frozenset({1}), 1, 8, 6, 4, live_bytes=4, column_bytes=2, dependent_reductions=1)
    over = PersistentLoopProblem((0,), frozenset({1}), accumulator_bytes=4, column_bytes=0, inner=False)
    across = Problem((rows, columns), frozenset({0}), 1, 8, 4, 4, persistent_loop=over, loop_is_optional=True)
    made = [(choose_schedule(problem, HOPPER), problem) for problem in (one, inside, across)]
    return fusion_gain(made[0], made[1:], SHARED_BYTES, HOPPER).saved


@pytest.mark.parametrize("columns", [1024, 4096, 16384, 65536])
def test_many_rows_gain_what_is_read_once(columns: int) -> None:
    rows = (1 << 27) // columns
    assert gain(rows, columns) > 0.9 * SHARED_BYTES * rows * columns / 4.26e6


def test_few_long_rows_are_not_worth_their_parts() -> None:
    """H200, us of one kernel and two: 2 rows 6.0 and 3.8, 16 rows 8.2 and 5.6, 64 rows 13.2 and 15.8."""
    assert [gain(rows, 65536) > 0 for rows in (2, 16, 64, 128)] == [False, False, True, True]


@pytest.mark.parametrize("rows", [2, 16, 64])
def test_a_launch_is_worth_more_than_the_end_of_short_rows(rows: int) -> None:
    assert gain(rows, 1024) > 0


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
    assert "one kernel is estimated" in made[0].explain()
    assert "one kernel is estimated" not in made[1].explain()

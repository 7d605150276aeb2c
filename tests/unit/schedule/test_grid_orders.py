"""Blocks that follow one another along the rows of a result whose sectors they share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.parts.array_access import ArrayAccess, split_sectors
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import check_schedule
from mlirfuse.target import target_of
from tests.support.forms import problem

TARGET = target_of("sm_90a")


def transposed(rows: int, columns: int) -> Problem:
    def fn(x: Any) -> Any:
        return mf.astype(mf.tanh(mf.permute_dims(x, (1, 0))), mf.bfloat16)

    return problem(fn, [mf.TensorSpec((rows, columns), mf.float16)])


def result(columns: int, nbytes: int = 2) -> ArrayAccess:
    return ArrayAccess((0, 1), (columns, 1), nbytes, 16, True, True)


def test_tiles_share_the_sectors_in_which_rows_end() -> None:
    whole = (64, 1024)
    assert split_sectors(result(1024), (64, 64), whole) is None
    assert split_sectors(result(1000), (64, 1000), (64, 1000)) is None  # the array as a whole
    assert split_sectors(result(1000), (8, 1000), (64, 1000)) is None  # 8 rows of 2000 bytes
    assert split_sectors(result(1000), (1, 1000), (64, 1000)) == (0, 64 / 2)  # every second row begins at a sector
    dim, count = split_sectors(result(390), (64, 64), (163840, 390)) or (None, 0.0)
    assert (dim, count) == (1, pytest.approx(163840 * 390 / 64 * 7 / 8))


def test_blocks_follow_one_another_along_rows_that_end_inside_of_sectors() -> None:
    """1.6 times as fast and more on an H200 (`benchmarks/results/grid_orders-h200.json`)."""
    found = transposed(390, 163840)
    schedule = choose_schedule(found, TARGET)
    result = next(a for a in found.arrays if a.written)
    assert schedule.grid_order
    assert schedule.grid_order[-1] == result.order[0]
    machine = machine_of("sm_90a")
    as_it_is = predict(replace(schedule, grid_order=()), found, machine).microseconds
    assert as_it_is > 1.5 * predict(schedule, found, machine).microseconds


def test_blocks_keep_their_order_where_rows_are_whole_sectors() -> None:
    assert all(not p.schedule.grid_order for p in proposals(transposed(4096, 8192), TARGET))


@pytest.mark.parametrize(
    ("order", "message"),
    [((0, 0), "does not have each of the 2 dimensions once"), ((1,), "does not have each of the 2 dimensions once")],
)
def test_other_orders_are_refused(order: tuple[int, ...], message: str) -> None:
    found = transposed(390, 4096)
    schedule = replace(choose_schedule(found, TARGET), grid_order=order)
    assert message in (check_schedule(schedule, found.extents, found.reduced, TARGET) or "")


def test_loops_have_no_grid_order() -> None:
    rows = problem(lambda x: mf.sum(x, axis=0), [mf.TensorSpec(("n", 1024), mf.float32)])
    loop = next(p.schedule for p in proposals(rows, TARGET) if p.family == "loop")
    order = tuple(range(len(loop.tile)))
    refused = check_schedule(replace(loop, grid_order=order), rows.extents, rows.reduced, TARGET)
    assert refused == "only blocks of one tile each, which stays in registers, follow one another in a grid_order"

"""Rows in chunks: blocks that share a row, and chunks that leave no remainder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.schedule.choice.proposals import block_proposals
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.rows.chunked import multi_pass_schedule
from mlirfuse.target import target_of

TARGET = target_of("sm_90a")


def softmax(columns: int, register_scale: float = 1.0) -> Problem:
    return Problem(
        (2048, columns),
        frozenset({1}),
        1,
        8,
        4,
        2,
        live_bytes=2,
        dependent_reductions=1,
        reductions=(RowReduction(frozenset({1}), frozenset({0}), 8),),
        instructions=16.0,
        special=2.0,
        register_scale=register_scale,
    )


@pytest.mark.parametrize(
    ("columns", "chunk"),
    [(96000, 32000), (128256, 32064), (131072, 32768), (32768 + 8, 16384 + 4), (50257, 32768)],
)
def test_chunks_leave_no_remainder_where_as_many_smaller_ones_do(columns: int, chunk: int) -> None:
    """Of vectors of 8: a chunk that is none, or does not divide the row, stays as large as threads cover."""
    schedule = multi_pass_schedule(softmax(columns), TARGET)
    assert schedule.tile[1] == (chunk if chunk % 8 == 0 else schedule.layout.extents[1])
    assert schedule.layout.extents[1] >= schedule.tile[1]


def test_rows_that_are_read_again_are_proposed_with_and_without_clusters() -> None:
    found = {each.schedule for each in block_proposals(softmax(200000), TARGET) if each.family == "chunked"}
    assert {schedule.layout.cluster for schedule in found if schedule.persistence == "multi_pass"} == {1, 2, 4}


@pytest.mark.parametrize(("live", "orders"), [(4, {"breadth", "depth"}), (2, {"breadth"})])
def test_short_rows_go_depth_first_once_registers_were_short(live: int, orders: set[str]) -> None:
    """Where what lives across the maximum is wider than what is read: breadth-first, all of it is made at once."""
    first, again = (replace(softmax(5120, scale), live_bytes=live) for scale in (1.0, 2.0))
    assert {each.order for each in row_candidates(first, TARGET)} == {"breadth"}
    assert {each.order for each in row_candidates(again, TARGET)} == orders

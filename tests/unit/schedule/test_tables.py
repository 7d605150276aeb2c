"""Rows of which some share a table, as heads share the angles of a rotary embedding."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.elementwise import elementwise_schedules
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.predict import work_of
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
MACHINE = machine_of(TARGET, "NVIDIA H200")
HEADS, POSITIONS, HALF = 256, 2048, 64


def rotary() -> Problem:
    """Normalised heads in halves, each of which a table of positions is multiplied with."""
    half = ArrayAccess((0, 1, 2), (POSITIONS * 2 * HALF, 2 * HALF, 1), 2, 16, False, False)
    table = ArrayAccess((1, 2), (HALF, 1), 4, 16, False, True)
    result = ArrayAccess((0, 1, 2), (POSITIONS * HALF, HALF, 1), 2, 16, True, True)
    return Problem(
        (HEADS, POSITIONS, HALF),
        frozenset({2}),
        2,
        8,
        8,
        4,
        live_bytes=4,
        dependent_reductions=1,
        reductions=(RowReduction(frozenset({2}), frozenset({0, 1}), 4),),
        arrays=(half, half, table, table, result, result),
        instructions=20.0,
    )


def test_rows_of_a_thread_lie_along_what_shares_a_table() -> None:
    found = {s.layout.repeats[:2] for s in row_candidates(rotary(), TARGET)}
    assert {(2, 1), (4, 1), (1, 2), (1, 4)} <= found
    alone = replace(rotary(), arrays=rotary().arrays[:2])
    assert all(s.layout.repeats[0] == 1 for s in row_candidates(alone, TARGET))


def test_vectors_of_a_thread_lie_along_what_shares_a_table() -> None:
    rotated = replace(rotary(), reduced=frozenset(), reductions=(), dependent_reductions=0)
    found = {s.layout.repeats for s in elementwise_schedules(rotated, TARGET)}
    assert {(2, 1, 1), (4, 1, 1)} <= found
    assert choose_schedule(rotated, TARGET, machine=MACHINE).layout.repeats[0] > 1
    alone = replace(rotated, arrays=(*rotary().arrays[:2], *rotary().arrays[4:]))
    assert all(s.layout.repeats[0] == 1 for s in elementwise_schedules(alone, TARGET))


def test_tables_are_read_once_a_block() -> None:
    works = []
    for heads in (1, 4):
        layout = BlockedLayout((1, 1, 8), (1, 4, 8), (1, 2, 1), (heads, 1, 1), (1, 1, 1))
        works.append(work_of(Schedule((heads, 8, HALF), layout), rotary(), MACHINE))
    table = 2 * 4 * POSITIONS * HALF
    assert works[0].l2_again == (HEADS - 1) * table
    assert works[1].l2_again == (HEADS // 4 - 1) * table
    assert works[0].l2_read == works[1].l2_read


def test_several_heads_a_thread_are_chosen() -> None:
    chosen = choose_schedule(rotary(), TARGET, machine=MACHINE)
    assert chosen.layout.repeats[0] > 1

"""Which schedule is tried next where the assembler reports spills: pure functions, no IR."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from mlirfuse.machine import machine_of, shipped_models
from mlirfuse.schedule.choice.attempts import (
    MOST_AGAIN,
    MOST_LEAN,
    Attempt,
    choose_contraction_again,
    choose_schedule_again,
    least_spilling,
    roomier,
    shorter,
    thinner,
)
from mlirfuse.schedule.choice.choice import choose_schedule, faster, kind_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.choice.low_registers import low_register_schedules
from mlirfuse.schedule.model.registers import uncorrected_registers
from mlirfuse.schedule.model.residency import registers_left
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.rows.chunked import multi_pass_schedule
from mlirfuse.schedule.schedule import check_schedule
from mlirfuse.support.dtypes import bfloat16, float32
from mlirfuse.target import target_of

HOPPER = target_of("sm_90a")
H200 = shipped_models()["h200"]

NORM = Problem((None, 4096), frozenset({1}), 1, 8, 4, 2, live_bytes=2, shared_spill_bytes=2, dependent_reductions=2)
ELEMENTWISE = Problem((None, 4096), frozenset(), 1, 8, 4, 2)
LOOP = PersistentLoopProblem((0,), frozenset({1}), 4, 0, inner=True)
BACKWARD = Problem((None, 1024), frozenset({0, 1}), 1, 8, 6, 4, persistent_loop=LOOP, dependent_reductions=1)
PRODUCT = ContractionProblem((), 4096, 4096, 4096, bfloat16, float32, 16)


def _legal(problem: Problem):
    return lambda schedule: check_schedule(schedule, problem.extents, problem.reduced, HOPPER) is None


def _tried(problem: Problem, spilled: int, count: int) -> list[Attempt]:
    """Attempts at a problem in whose order every schedule spills as many bytes."""
    attempts = [Attempt(choose_schedule(problem, HOPPER), 40, spilled)]
    while len(attempts) < count:
        schedule = choose_schedule_again(attempts, problem, HOPPER, "auto", _legal(problem))
        attempts.append(Attempt(schedule, 40, spilled))
    return attempts


SUMS = Problem(
    (128, 65536),
    frozenset({0}),
    1,
    8,
    2,
    2,
    dependent_reductions=1,
    reductions=(RowReduction(frozenset({0}), frozenset({1}), 4),),
    instructions=1.0,
)


def test_registers_that_were_not_expected_count_for_what_they_leave():
    legal, first = _legal(SUMS), choose_schedule(SUMS, HOPPER)
    expected = predict(first, SUMS, H200).microseconds
    few, many = Attempt(first, 24, 0), Attempt(first, 255, 0)
    assert choose_schedule_again([few], SUMS, HOPPER, "auto", legal, H200) == first
    second = choose_schedule_again([many], SUMS, HOPPER, "auto", legal, H200)
    assert expected <= predict(second, SUMS, H200).microseconds < predict(first, SUMS, H200, registers=255).microseconds
    assert choose_schedule_again([many], SUMS, HOPPER, "auto", lambda _: False, H200) == first


def test_of_schedules_with_code_the_fastest_is_kept_once_enough_were_tried_or_one_fails():
    attempts = [Attempt(choose_schedule(SUMS, HOPPER), 255, 0)]
    while len(attempts) <= MOST_AGAIN:
        schedule = choose_schedule_again(attempts, SUMS, HOPPER, "auto", _legal(SUMS), H200)
        assert schedule not in {attempt.schedule for attempt in attempts}
        attempts.append(Attempt(schedule, 255, 0))
    taken = {a.schedule: predict(a.schedule, SUMS, H200, registers=255).microseconds for a in attempts}
    assert choose_schedule_again(attempts, SUMS, HOPPER, "auto", _legal(SUMS), H200) == min(
        taken, key=taken.__getitem__
    )
    failed = [attempts[0], replace(attempts[1], spilled=8)]
    assert choose_schedule_again(failed, SUMS, HOPPER, "auto", _legal(SUMS), H200) == attempts[0].schedule


@pytest.mark.parametrize("spilled", [4, 100, 1500])
@pytest.mark.parametrize("problem", [NORM, ELEMENTWISE, BACKWARD], ids=["norm", "elementwise", "backward"])
def test_each_schedule_is_another_and_legal(problem, spilled):
    schedules = [attempt.schedule for attempt in _tried(problem, spilled, 1 + MOST_AGAIN)]
    assert len(set(schedules)) == 1 + MOST_AGAIN
    assert all(_legal(problem)(schedule) for schedule in schedules)


def test_the_same_attempts_give_the_same_schedule():
    assert _tried(NORM, 60, 4) == _tried(NORM, 60, 4)


def test_after_all_families_the_one_that_loses_least_is_kept():
    attempts = _tried(NORM, 60, 1 + MOST_AGAIN + MOST_LEAN)
    times = {each.schedule: predict(each.schedule, with_extents(NORM), H200).microseconds for each in attempts}
    slow = max(attempts, key=lambda attempt: times[attempt.schedule])
    attempts = [replace(each, spilled=16 if each == slow else 60) for each in attempts]
    least = min(attempts, key=lambda attempt: attempt.lacking * times[attempt.schedule])
    assert choose_schedule_again(attempts, NORM, HOPPER, "auto", _legal(NORM), H200) == least.schedule != slow.schedule
    refused = [replace(each, spilled=0, refused="no shared memory") if each == least else each for each in attempts]
    kept = choose_schedule_again(refused, NORM, HOPPER, "auto", _legal(NORM), H200)
    assert kept != least.schedule, "what does not compile spills nothing, and is not taken"
    assert least_spilling(refused).schedule == slow.schedule


def test_what_nearly_fits_is_not_counted():
    """Where a few registers are lacking, a schedule with these is near: one more is tried for each such attempt."""
    attempts = _tried(NORM, 60, 1 + MOST_AGAIN + MOST_LEAN)
    attempts[2] = replace(attempts[2], spilled=4)
    again = choose_schedule_again(attempts, NORM, HOPPER, "auto", _legal(NORM))
    assert again not in [attempt.schedule for attempt in attempts]


def test_the_only_legal_schedule_is_kept():
    attempts = _tried(NORM, 60, 1)
    assert choose_schedule_again(attempts, NORM, HOPPER, "auto", lambda _: False) == attempts[0].schedule


def test_few_lacking_registers_are_found_by_fewer_resident_blocks():
    """Half of what makes kernels spill are 32 or 40 registers that so many resident blocks leave a thread."""
    first = choose_schedule(NORM, HOPPER)
    had = registers_left(first.layout.threads, first.blocks_per_sm, HOPPER)
    again = choose_schedule_again([Attempt(first, had, 40)], NORM, HOPPER, "auto", _legal(NORM))
    assert registers_left(again.layout.threads, again.blocks_per_sm, HOPPER) > had


def test_estimates_grow_by_the_factor():
    from mlirfuse.schedule.model.registers import registers_per_thread

    layout = choose_schedule(NORM, HOPPER).layout
    plain = registers_per_thread(NORM, layout, "breadth")
    assert registers_per_thread(replace(NORM, register_scale=1.5), layout, "breadth") == round(1.5 * plain)


def test_half_of_what_one_schedule_spilled_is_lacking():
    """Values may be stored several times: what a thread had, and half of the stored registers, is what it wanted."""
    first = choose_schedule(NORM, HOPPER)
    estimated = uncorrected_registers(first, NORM)
    assert estimated is not None
    again = choose_schedule_again([Attempt(first, 40, 248)], NORM, HOPPER, "auto", _legal(NORM))
    factor = (40 + 248 / 8) / estimated
    assert again == choose_schedule(replace(NORM, register_scale=factor), HOPPER)


def test_roomier_gives_threads_what_was_lacking():
    first = choose_schedule(NORM, HOPPER)
    threads = first.layout.threads
    had = registers_left(threads, first.blocks_per_sm, HOPPER)
    enough, alone = roomier(Attempt(first, had, 32), HOPPER)
    assert registers_left(threads, enough.blocks_per_sm, HOPPER) >= had + 8
    assert alone.blocks_per_sm == 1
    assert list(roomier(Attempt(replace(first, blocks_per_sm=1), 255, 32), HOPPER)) == []


def test_thinner_halves_what_a_thread_has_and_keeps_reduced_dimensions_whole():
    schedules = [
        choose_schedule(ELEMENTWISE, HOPPER),
        *thinner(Attempt(choose_schedule(ELEMENTWISE, HOPPER), 40, 4), ELEMENTWISE),
    ]
    assert [s.layout.elements_per_thread for s in schedules] == [8, 4, 2, 1]
    assert all(_legal(ELEMENTWISE)(s) for s in schedules)
    row = choose_schedule(NORM, HOPPER)
    assert list(thinner(Attempt(row, 40, 4), NORM)) == []
    chunked = replace(row, persistence="multi_pass")
    assert [s.layout.elements_per_thread for s in thinner(Attempt(chunked, 40, 4), NORM)][-1] == 1


@pytest.mark.parametrize(("grid_reduction", "second_stage"), [("second_kernel", True), ("grid_sync", False)])
def test_second_stages_that_spill_read_less_at_once(grid_reduction, second_stage):
    schedule = choose_schedule(BACKWARD, HOPPER, grid_reduction).with_loop(second_stage_reads=8)
    (thin,) = thinner(Attempt(schedule, 40, 4, second_stage=second_stage), BACKWARD)
    assert thin == schedule.with_loop(second_stage_reads=4)


def test_loops_that_spill_are_not_changed_in_their_second_kernel():
    schedule = choose_schedule(BACKWARD, HOPPER, "second_kernel").with_loop(second_stage_reads=8)
    assert not list(thinner(Attempt(schedule, 40, 4), BACKWARD))


def test_contractions_leave_more_registers_beside_their_sums():
    attempts = [Attempt(choose_contraction(PRODUCT, HOPPER, H200), 168, 1000)]
    for _ in range(MOST_AGAIN):
        schedule = choose_contraction_again(attempts, PRODUCT, HOPPER, H200, lambda _: True)
        attempts.append(Attempt(schedule, 168, 1000))
    assert len({attempt.schedule for attempt in attempts}) == 1 + MOST_AGAIN
    held = [attempt.schedule.layout.elements_per_thread for attempt in attempts]
    assert all(later <= earlier for earlier, later in pairwise(held))
    assert held[1] < held[0]


@pytest.mark.parametrize("spilled", [8, 1476])
def test_tiles_stay_where_others_are_slower(spilled):
    ampere, a100 = target_of("sm_80"), machine_of(target_of("sm_80"))
    first = choose_contraction(PRODUCT, ampere, a100)
    attempts = [Attempt(first, 255, spilled)]
    assert choose_contraction_again(attempts, PRODUCT, ampere, a100, lambda _: True) == replace(first, order="depth")
    again = [*attempts, Attempt(replace(first, order="depth"), 255, spilled)]
    later = choose_contraction_again(again, PRODUCT, ampere, a100, lambda _: True)
    assert later.layout.elements_per_thread < first.layout.elements_per_thread


def test_steps_along_k_get_shorter_but_those_of_warpgroups():
    odd = replace(PRODUCT, row_bytes=2)
    schedule = choose_contraction(odd, HOPPER, H200)
    assert schedule.contraction.instruction == "mma"
    steps = [s.contraction.k for s in shorter(schedule)]
    assert steps[0] == schedule.contraction.k // 2
    assert steps == sorted(steps, reverse=True)
    assert list(shorter(choose_contraction(PRODUCT, HOPPER, H200))) == []


def test_attempts_are_attributes():
    from mlir import ir

    from mlirfuse.compiler.context import make_context
    from mlirfuse.support.dataclass_attributes import from_attribute, to_attribute

    attempt = Attempt(choose_schedule(NORM, HOPPER), 40, 12, refused="why")
    with make_context(), ir.Location.unknown():
        assert from_attribute(Attempt, to_attribute(attempt)) == attempt


def _kept(schedule):
    return schedule.persistence if schedule.persistent_loop is None else "persistent_loop"


@pytest.mark.parametrize(
    ("problem", "family"),
    [(NORM, {"registers", "multi_pass"}), (ELEMENTWISE, {"registers"}), (BACKWARD, {"persistent_loop"})],
    ids=["norm", "elementwise", "backward"],
)
def test_what_spills_in_all_schedules_of_a_family_is_tried_in_the_one_that_holds_least(problem, family):
    tried = _tried(problem, 60, 1 + MOST_AGAIN + MOST_LEAN)
    lean = [attempt.schedule for attempt in tried[1 + MOST_AGAIN :]]
    assert lean
    assert {_kept(schedule) for schedule in lean[1:]} <= family
    assert all(_legal(problem)(schedule) for schedule in lean)


def test_rows_get_more_threads_before_they_are_read_again():
    """Of a few bytes that spill at any number of resident blocks (a gated norm of 5120 columns)."""
    tried = _tried(NORM, 4, 2 + MOST_AGAIN)
    *others, thin = [attempt.schedule for attempt in tried]
    assert thin.layout.elements_per_thread <= min(each.layout.elements_per_thread for each in others) // 2
    fast, slow = (
        predict(schedule, NORM, H200).microseconds
        for schedule in (thin, next(low_register_schedules(NORM, HOPPER, "auto")))
    )
    assert fast <= slow


def test_lean_rows_hold_a_vector_a_thread_at_last():
    *_, last = low_register_schedules(NORM, HOPPER, "auto")
    assert last.layout.elements_per_thread == 1
    assert last.blocks_per_sm == 1, "ptxas, left alone, aims at fewer registers than it has"


@pytest.mark.parametrize("columns", [255, 1024])
def test_there_is_a_lean_loop_whatever_the_vector(columns):
    """Rows of an odd length have vectors of one element, of which none is narrower."""
    vector = 1 if columns % 2 else 8
    problem = replace(BACKWARD, extents=(None, columns), vector=vector)
    lean = list(low_register_schedules(problem, HOPPER, "auto"))
    assert lean
    assert all(schedule.persistent_loop is not None and _legal(problem)(schedule) for schedule in lean)


def test_thinner_chunks_keep_other_reduced_dimensions_whole():
    problem = Problem((None, 64, 100000), frozenset({1, 2}), 2, 4, 8, 4, live_bytes=4, dependent_reductions=2)
    chunks = multi_pass_schedule(problem, HOPPER)
    assert chunks.tile[1] == 64
    assert all(schedule.tile[1] == 64 for schedule in thinner(Attempt(chunks, 40, 4), problem))


BOTH = RowReduction(frozenset({0, 1}), frozenset(), 8)
WIDE = Problem((129, 258), frozenset({0, 1}), 1, 2, 24, 8, live_bytes=8, dependent_reductions=1, reductions=(BOTH,))


def _after_wide_chunks(problem: Problem) -> list[Attempt]:
    """Attempts at chunks of which each has half of the last one's elements, as `thinner` has them, and all spill."""
    alone = replace(multi_pass_schedule(problem, HOPPER), blocks_per_sm=1)
    return [Attempt(schedule, 128, 2000) for schedule in (alone, *thinner(Attempt(alone, 40, 4), problem))][
        : 1 + MOST_AGAIN
    ]


def test_lean_rows_are_at_most_half_of_what_spilled():
    """The longest dimension was chunked and the other one whole in each tile: 9 elements a thread (seed 7002704)."""
    attempts = _after_wide_chunks(WIDE)
    attempts += attempts[-1:] * (1 + MOST_AGAIN - len(attempts))
    held = min(attempt.schedule.layout.elements_per_thread for attempt in attempts)
    assert held > 2
    lean = choose_schedule_again(attempts, WIDE, HOPPER, "auto", _legal(WIDE))
    assert lean.layout.elements_per_thread <= held // 2
    assert lean.tile[1] == 258, "lanes lie along contiguous memory"


def test_the_last_attempt_has_the_fewest_elements_of_all():
    attempts = _tried(WIDE, 60, 1 + MOST_AGAIN + MOST_LEAN)
    fewest = min(s.layout.elements_per_thread for s in low_register_schedules(WIDE, HOPPER, "auto"))
    assert attempts[-1].schedule.layout.elements_per_thread == fewest == 1


def test_what_several_sets_of_dimensions_are_reduced_over_is_chunked_along_what_they_share():
    """Of persistent loops, whose tiles hold rows whole, the kernel spilled in all (seed 51005569)."""
    row = RowReduction(frozenset({2}), frozenset({0, 1}), 8)
    mask = RowReduction(frozenset({0, 2}), frozenset({1}), 1)
    loop = PersistentLoopProblem((0,), frozenset({1}), 1, 0, inner=True, outer_only=False)
    problem = Problem(
        (2, 129, 257), frozenset({0, 2}), 2, 1, 7, 3, 4, persistent_loop=loop, reductions=(mask, row, row)
    )
    chunks = [s for s in low_register_schedules(problem, HOPPER, "auto") if s.persistence == "multi_pass"]
    assert [(s.tile[0], s.tile[2] < 257, s.layout.elements_per_thread) for s in chunks] == [(2, True, 1)]
    assert all(_legal(problem)(s) for s in chunks)
    apart = replace(problem, reductions=(replace(row, dims=frozenset({0})), row))
    assert all(s.persistence != "multi_pass" for s in low_register_schedules(apart, HOPPER, "auto"))


def test_estimates_of_another_kind_are_not_corrected():
    """Rows of 8192 that hold their columns spill heavily, while a loop over them may be as fast."""
    part = RowReduction(frozenset({0}), frozenset({1}), 4)
    loop = PersistentLoopProblem((0,), frozenset({1}), 4, 0, inner=False)
    columns = Problem(
        (8192, 4096), frozenset({0}), 1, 8, 2, 2, reductions=(part,), persistent_loop=loop, loop_is_optional=True
    )
    first = choose_schedule(columns, HOPPER)
    kept = {kind_of(first)}
    slow = max(low_register_schedules(columns, HOPPER, "auto"), key=lambda s: predict(s, columns, H200).microseconds)
    found = faster(columns, HOPPER, slow, lambda s: kind_of(s) not in kept)
    assert found is not None
    assert kind_of(found) not in kept
    assert predict(found, columns, H200).microseconds < predict(slow, columns, H200).microseconds
    assert faster(columns, HOPPER, first, lambda s: kind_of(s) not in kept) is None

"""Predictions say what must be true of any machine: more work takes no less time, and each part is what it is named."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import RESOLUTION, choose_schedule
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.elementwise import elementwise_schedule
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict import Prediction, Work, predict, price, work_of
from mlirfuse.schedule.predict.counts.space import runs, waste, with_extents
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR, target_of

H200 = machine_of("sm_90a")
SOFTMAX = Problem(
    (8192, 4096),
    frozenset({1}),
    1,
    8,
    4,
    2,
    live_bytes=2,
    stores_last=True,
    dependent_reductions=2,
    reductions=(RowReduction(frozenset({1}), frozenset({0}), 4),) * 2,
    instructions=17.5,
    special=2.0,
)
COLUMNS = Problem(
    (50000, 1024),
    frozenset({0}),
    1,
    4,
    4,
    4,
    dependent_reductions=1,
    reductions=(RowReduction(frozenset({0}), frozenset({1}), 4),),
    persistent_loop=PersistentLoopProblem((0,), frozenset({1}), 4, 0, False),
    loop_is_optional=True,
    instructions=1.0,
)
COPY = Problem((1 << 26,), frozenset(), 0, 4, 8, 4, instructions=1.0)
WORK = Work(
    blocks=4096, cluster=1, threads=256, resident=8, sms=132, read=1e8, written=1e8, l2_read=1e8, l2_written=1e8
)
MORE = [
    f.name
    for f in fields(Work)
    if f.name not in ("cluster", "threads", "resident", "sms", "ahead", "blocks", "streams")
]


def row(warps: int = 8, repeats: int = 2, cluster: int = 1) -> Schedule:
    layout = BlockedLayout((1, 8), (1, 32), (1, warps), (1, repeats), (1, cluster))
    return Schedule((1, 4096), layout, blocks_per_sm=4)


def loop(grid_reduction: str = "grid_sync", stages: int = 3, cluster: int = 1) -> Schedule:
    layout = BlockedLayout((1, 4), (1, 32), (1, 8), (1, 1), (1, 1))
    second = BlockedLayout((1, 4), (4, 8), (8, 1), (1, 1), (1, 1))
    blocks = 264 if grid_reduction == "second_kernel" else 0
    plan = PersistentLoop((0,), grid_reduction, (32, 32), second, stages=stages, second_stage_reads=9, blocks=blocks)
    return Schedule((1, 1024), layout, blocks_per_sm=2, persistent_loop=plan)


def copy(vector: int, threads: int = 256) -> Schedule:
    layout = BlockedLayout((vector,), (32,), (threads // 32,), (1,), (1,))
    return Schedule((vector * threads,), layout)


@pytest.mark.parametrize("name", MORE)
def test_more_of_anything_takes_no_less_time(name: str) -> None:
    more = replace(WORK, **{name: 2 * getattr(WORK, name) + 1})
    assert price(more, H200).microseconds >= price(WORK, H200).microseconds


def test_blocks_take_time_to_start_and_clusters_more() -> None:
    counts = [price(replace(WORK, blocks=n), H200) for n in (1, 132, 1056, 1057, 10_000, 1_000_000)]
    assert [t.blocks for t in counts] == sorted(t.blocks for t in counts)
    assert [t.latency for t in counts] == sorted(t.latency for t in counts)
    assert price(replace(WORK, cluster=4), H200).blocks > price(WORK, H200).blocks


def test_a_wave_that_is_hardly_begun_takes_as_long_as_a_full_one() -> None:
    full, begun = (price(replace(WORK, blocks=n), H200).latency for n in (1056, 1100))
    assert begun == pytest.approx(2 * full)


def test_few_blocks_of_a_last_wave_wait_for_what_nothing_hides() -> None:
    slow = replace(WORK, rounds=20.0)
    full, last, most, many = (price(replace(slow, blocks=n), H200).exposed for n in (2112, 2212, 3100, 9 * 1056 + 100))
    assert last > most == full == many == 0.0


def test_what_is_loaded_ahead_overlaps_with_steps() -> None:
    slow = replace(WORK, rounds=10.0, waits=2000.0)
    assert price(replace(slow, steps=10, ahead=1), H200).latency < price(slow, H200).latency


def test_the_time_lies_between_the_largest_part_and_the_sum() -> None:
    found = price(WORK, H200)
    parts = [getattr(found, f.name) for f in fields(Prediction) if f.name not in ("in_work", "ahead")]
    assert max(parts) <= found.microseconds <= sum(parts)
    assert getattr(found, found.bound) == max(parts)
    assert found.explanation


def test_a_copy_is_bound_by_device_memory() -> None:
    found = predict(copy(4), COPY, H200)
    assert found.bound == "dram"
    assert found.dram == pytest.approx((1 << 29) / H200.dram_bandwidth * 1e6)
    assert found.microseconds < 1.35 * found.dram


def test_results_of_reductions_are_written() -> None:
    read = ArrayAccess((0, 1), (1 << 22, 1), 4, 16, written=False, is_contiguous=True)
    written = ArrayAccess((1,), (1,), 4, 16, written=True, is_contiguous=True)
    pairs = replace(COLUMNS, extents=(2, 1 << 22), persistent_loop=None, arrays=(read, written))
    layout = BlockedLayout((1, 4), (1, 32), (1, 8), (1, 1), (1, 1))
    found = predict(Schedule((1, 1024), layout, persistence="multi_pass"), pairs, H200)
    assert found.dram == pytest.approx(3 * (1 << 24) / H200.dram_bandwidth * 1e6)


def test_narrow_vectors_take_longer() -> None:
    wide, narrow = (predict(copy(vector), COPY, H200) for vector in (4, 1))
    assert narrow.microseconds > wide.microseconds
    assert narrow.latency > 2 * wide.latency


def test_small_arrays_are_found_in_the_l2() -> None:
    small = replace(COPY, extents=(1 << 14,))
    assert predict(copy(1), small, H200).dram == 0
    assert predict(copy(1), small, H200).microseconds < 1.5


def test_twice_the_rows_take_no_less() -> None:
    times = [predict(row(), replace(SOFTMAX, extents=(n, 4096)), H200).microseconds for n in (1, 100, 1000, 8192, 9000)]
    assert times == sorted(times)


def test_rows_over_clusters_pay_for_them() -> None:
    alone, cluster = predict(row(), SOFTMAX, H200), predict(row(4, 1, 4), SOFTMAX, H200)
    assert cluster.dsmem > alone.dsmem == 0
    assert cluster.microseconds > alone.microseconds


def test_the_assemblers_registers_replace_the_estimate() -> None:
    few, many = (predict(row(), SOFTMAX, H200, registers=n) for n in (32, 200))
    assert many.in_work < few.in_work
    assert many.latency > few.latency


def test_rows_read_again_come_from_where_they_fit() -> None:
    multi_pass = replace(row(32, 1), persistence="multi_pass", tile=(1, 8192), blocks_per_sm=0)
    near, middle, far = (
        work_of(multi_pass, replace(SOFTMAX, extents=extents), H200)
        for extents in ((8192, 8192), (1, 1 << 22), (1, 1 << 26))
    )
    assert near.l1 > near.l2_read
    assert middle.l2_rounds > 0
    assert middle.read == (1 << 22) * 2
    assert far.read == 3 * (1 << 26) * 2


def test_one_block_that_adds_up_all_partials_takes_longest() -> None:
    times = {stage: predict(loop(stage), COLUMNS, H200) for stage in ("grid_sync", "second_kernel", "last_block")}
    assert times["last_block"].synchronisation > 4 * times["grid_sync"].synchronisation
    assert times["second_kernel"].launch == pytest.approx(2 * H200.dependent_launch * 1e6)
    assert times["grid_sync"].launch == pytest.approx(H200.graph_launch * 1e6)


def test_stages_hide_latency() -> None:
    times = [predict(loop(stages=stages), COLUMNS, H200).latency for stages in (1, 2, 3, 4)]
    assert times == sorted(times, reverse=True)


def test_more_bandwidth_never_hurts() -> None:
    faster = replace(H200, dram_bandwidth=2 * H200.dram_bandwidth, l2_read_bandwidth=2 * H200.l2_read_bandwidth)
    for schedule, problem in ((row(), SOFTMAX), (loop(), COLUMNS), (copy(4), COPY)):
        assert predict(schedule, problem, faster).microseconds < predict(schedule, problem, H200).microseconds


def test_runs_reach_from_the_contiguous_dimension_outwards() -> None:
    assert runs((1024, 4096), (1, 128), 1) == (128, 128)
    assert runs((1024, 4096), (8, 128), 1) == (128, 4096)
    assert runs((1 << 20, 3), (8, 3), 1) == (24, 24)
    assert runs((4096, 4096), (32, 1), 1) == (1, 4096)
    assert runs((64, 56, 8), (4, 1, 8), 2) == (8, 448)


def test_short_runs_waste_sectors_and_lines() -> None:
    assert waste(2.0, 8192.0, SECTOR) == 16
    assert waste(4.0, 12.0, SECTOR) == 3
    assert waste(64.0, 8192.0, SECTOR) == 1
    assert waste(64.0, 8192.0, LINE) == 2


def test_dynamic_extents_are_assumed() -> None:
    dynamic = replace(SOFTMAX, extents=(None, 4096))
    assert with_extents(dynamic).extents == (4096, 4096)
    assert predict(row(), dynamic, H200) == predict(row(), with_extents(dynamic), H200)


@pytest.mark.parametrize("problem", [SOFTMAX, COPY, COLUMNS])
def test_the_choice_is_the_minimum_over_all_proposals(problem: Problem) -> None:
    target = target_of("sm_90a")
    chosen = predict(choose_schedule(problem, target, machine=H200), problem, H200).microseconds
    times = [predict(p.schedule, problem, H200).microseconds for p in proposals(problem, target)]
    assert min(times) <= chosen <= RESOLUTION * min(times)


@pytest.mark.parametrize("chip", ["sm_80", "sm_89", "sm_100a", "sm_121"])
def test_every_machine_has_a_time(chip: str) -> None:
    target, machine = target_of(chip), machine_of(chip)
    for problem in (SOFTMAX, COPY, COLUMNS):
        schedule = choose_schedule(problem, target, machine=machine)
        assert 0 < predict(schedule, problem, machine).microseconds < 1e5


def test_wide_elements_in_vectors_of_narrow_ones_are_exchanged() -> None:
    """A vector of 8 elements is two accesses of float32, 32 bytes apart from those of the next lane: a warp writes and
    reads them in shared memory, to store whole lines.
    """
    widths = ((2, False), (4, False), (4, True))
    arrays = tuple(ArrayAccess((0,), (1,), n, 16, is_written, is_contiguous=True) for n, is_written in widths)
    mixed = replace(COPY, arrays=arrays, vector=8, full_bytes=10, read_bytes=6)
    wide, narrow = (predict(elementwise_schedule(replace(mixed, vector=vector)), mixed, H200) for vector in (8, 4))
    assert wide.l2 == narrow.l2
    assert wide.shared > narrow.shared


def test_what_waits_in_shared_memory_moves_twice() -> None:
    held, spilled = row(), replace(row(), order="depth", shared_spill=2, blocks_per_sm=row().blocks_per_sm)
    problem = replace(SOFTMAX, shared_spill_bytes=4)
    assert predict(spilled, problem, H200).exposed > predict(held, problem, H200).exposed == 0

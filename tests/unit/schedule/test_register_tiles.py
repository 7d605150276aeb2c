"""Register tiles of results, where no array varies along the whole space."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict import predict, work_of
from mlirfuse.schedule.predict.counts.instructions import ACCESS_INSTRUCTIONS
from mlirfuse.schedule.predict.kernels.chunks import unrolled_steps
from mlirfuse.schedule.problem import Problem, RowReduction, SharedInstructions
from mlirfuse.schedule.rows.register_tiles import MOST_RESULTS, register_tile_schedules
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)


def _array(dims: tuple[int, ...], *, written: bool = False) -> ArrayAccess:
    return ArrayAccess(dims, (*[None] * (len(dims) - 1), 1), 4, 16, written, is_contiguous=True)


DISTANCES = Problem(
    extents=(1024, 4096, 256),
    reduced=frozenset({2}),
    vector_dim=2,
    vector=4,
    full_bytes=12,
    read_bytes=8,
    dependent_reductions=1,
    reductions=(RowReduction(frozenset({2}), frozenset({0, 1}), 4),),
    arrays=(_array((0, 2)), _array((1, 2)), _array((0, 1), written=True)),
    instructions=3.0,
    sliding_instructions=(3.0, 0.0),
)


def test_threads_have_tiles_along_both_operands() -> None:
    schedules = list(register_tile_schedules(DISTANCES, TARGET))
    assert any(min(s.layout.repeats[:2]) > 1 for s in schedules)
    for schedule in schedules:
        assert schedule.layout.elements_per_thread <= MOST_RESULTS
        assert schedule.layout.vector[2] * schedule.layout.repeats[2] == 1  # no partial results for each element of k


def test_vectors_lie_along_results_where_memory_does() -> None:
    tropical = replace(DISTANCES, vector_dim=1, arrays=(_array((0, 2)), _array((2, 1)), _array((0, 1), written=True)))
    assert {s.layout.vector for s in register_tile_schedules(tropical, TARGET)} == {(1, 4, 1)}


def test_lanes_lie_along_what_is_reduced_too() -> None:
    """Also where memory is contiguous along few results, such as three coordinates, which leave most lanes idle. What
    all coordinates of a pair share is computed by the thread that has them.
    """
    arrays = (_array((0, 1)), _array((2, 1)), _array((0,)), _array((2,)), _array((2, 1), written=True))
    bodies = replace(DISTANCES, extents=(8192, 3, 8192), reduced=frozenset({0}), vector_dim=1, vector=1, arrays=arrays)
    bodies = replace(bodies, reductions=(RowReduction(frozenset({0}), frozenset({1, 2}), 4),))
    whole = [s for s in register_tile_schedules(bodies, TARGET) if s.layout.lanes == (32, 1, 1)]
    assert 3 in {s.layout.repeats[1] for s in whole}
    assert {s.layout.warps[0] > 1 for s in whole} == {True, False}
    of_pairs = replace(bodies, shared_instructions=(SharedInstructions(frozenset({0, 2}), 30.0, 2.0),))
    chosen = choose_schedule(of_pairs, TARGET, machine=machine_of(TARGET, None))
    assert chosen in whole
    assert chosen.layout.repeats[1] == 3


def test_what_no_step_changes_is_read_before_the_loop() -> None:
    """An array that varies along results only takes as many instructions as a step's loads."""
    machine = machine_of(TARGET, None)
    schedule = next(register_tile_schedules(DISTANCES, TARGET))
    steps = 256 // schedule.tile[2]
    found = []
    for dims in ((0,), (0, 2)):
        more = replace(DISTANCES, arrays=(*DISTANCES.arrays, _array(dims)))
        found.append(work_of(schedule, more, machine).instructions)
    before = work_of(schedule, DISTANCES, machine).instructions
    assert steps * (found[0] - before) == pytest.approx(found[1] - before)


@pytest.mark.parametrize("reads", [[(0, 1, 2), (1, 2)], [(0, 1, 2)]])
def test_none_where_an_array_varies_along_the_whole_space(reads: list[tuple[int, ...]]) -> None:
    arrays = (*map(_array, reads), _array((0, 1), written=True))
    assert not list(register_tile_schedules(replace(DISTANCES, arrays=arrays), TARGET))


def test_predicted_to_be_several_times_as_fast_as_rows() -> None:
    """Rows read each operand for every result; the register tile reads it once for several."""
    machine = machine_of(TARGET, None)
    chosen = choose_schedule(DISTANCES, TARGET, machine=machine)
    assert min(chosen.layout.repeats[:2]) > 1
    rows = min(
        predict(found.schedule, DISTANCES, machine).microseconds
        for found in proposals(DISTANCES, TARGET)
        if found.family in ("rows", "streamed", "chunked")
    )
    assert 3 * predict(chosen, DISTANCES, machine).microseconds < rows


def test_device_memory_is_read_once_where_the_l2_holds_the_operands() -> None:
    machine = machine_of(TARGET, None)
    schedule = next(register_tile_schedules(DISTANCES, TARGET))
    nbytes = 4 * (1024 * 256 + 4096 * 256 + 1024 * 4096)
    assert predict(schedule, DISTANCES, machine).dram == pytest.approx(1e6 * nbytes / machine.dram_bandwidth)


def test_steps_of_tiles_share_addresses() -> None:
    """Four steps are one where each load feeds several results: fewer instructions than a load and its address each."""
    machine = machine_of(TARGET, None)
    of_four = next(s for s in register_tile_schedules(DISTANCES, TARGET) if s.layout.repeats == (8, 8, 1))
    assert unrolled_steps(DISTANCES, of_four.layout, 32) == 4
    longer = replace(DISTANCES, extents=(1024, 4096, 512))
    work, more = (work_of(of_four, problem, machine) for problem in (DISTANCES, longer))
    each, loads = 3 * 64, 8 + 8
    of_step = each + loads * (1 + (ACCESS_INSTRUCTIONS - 1) / 4)
    steps = work.blocks * work.threads * 256 / of_four.tile[2]
    assert more.instructions - work.instructions == pytest.approx(steps * of_step)
    alone = next(s for s in register_tile_schedules(DISTANCES, TARGET) if s.layout.repeats == (8, 1, 1))
    assert unrolled_steps(DISTANCES, alone.layout, 32) == 1

"""Persistent loops over windows that slide along a thread's run, and what such windows cover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.grid.second_stage import second_stages
from mlirfuse.schedule.grid.sliding import BASE_REGISTERS, MOST_PRODUCTS, sliding_loops
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.predict.counts.instructions import STEP_INSTRUCTIONS
from mlirfuse.schedule.predict.predict import work_of
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
MACHINE = machine_of(TARGET)


def windows(step: int = 1, dilation: int = 1) -> ArrayAccess:
    """Of images of 56 x 56 x 96 in a space (n, p, q, c, r, s)."""
    strides = (56 * 56 * 96, step * 56 * 96, step * 96, 1)
    along = ((1, (0,)), (step, (0,)), (step, (0,)), (1, (0,)))
    slides = (None, (4, dilation), (5, dilation), None)
    return ArrayAccess((0, 1, 2, 3), strides, 2, 16, False, False, along, slides)


def problem(array: ArrayAccess, width: int = 56, channels: int = 96) -> Problem:
    """Gradients of 7 x 7 filters."""
    kept = frozenset({3, 4, 5})
    dy = ArrayAccess((0, 1, 2, 3), (56 * width * channels, width * channels, channels, 1), 2, 16, False, True)
    return Problem(
        (64, 56, width, channels, 7, 7),
        frozenset({0, 1, 2}),
        3,
        8,
        2,
        2,
        dependent_reductions=1,
        reductions=(RowReduction(frozenset({0, 1, 2}), kept, 4),),
        persistent_loop=PersistentLoopProblem((0, 1, 2), kept, 4, 0, False),
        loop_is_optional=True,
        arrays=(dy, array),
        instructions=3.0,
        sliding_instructions=(1.0, 2.0),
    )


def found(problem: Problem) -> list[Schedule]:
    assert problem.persistent_loop is not None
    return list(sliding_loops(problem, problem.persistent_loop, TARGET))


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize(("count", "taps"), [(1, 1), (8, 7), (2, 3), (30, 1)])
def test_elements_of_windows(step: int, dilation: int, count: int, taps: int) -> None:
    read = {number * step + tap * dilation for number in range(count) for tap in range(taps)}
    assert windows(step, dilation).elements((1, 1, count, 8, 1, taps)) == 8 * len(read)
    assert windows(step, dilation).steps((64, 56, 56, 96, 7, 7))[5] == 96 * dilation


def test_a_thread_holds_what_its_windows_have_in_common_once() -> None:
    ones = (1,) * 6
    layout = BlockedLayout((1, 1, 1, 4, 1, 1), (1, 1, 1, 4, 8, 1), ones, (1, 1, 8, 1, 1, 7), ones)
    assert held_elements(windows(), layout) == 14 * 4
    rows = replace(layout, lanes=(1, 8, 1, 4, 1, 1), repeats=(1, 1, 8, 1, 7, 7))
    assert held_elements(windows(), rows) == 7 * 14 * 4


def test_runs_divide_the_extent() -> None:
    schedules = found(problem(windows()))
    assert schedules
    for schedule in schedules:
        assert 56 % schedule.tile[2] == 0
        assert schedule.layout.is_alone([2, 5])
        assert schedule.persistent_loop is not None
        assert schedule.persistent_loop.consecutive


def test_none_without_windows_that_slide() -> None:
    assert not found(problem(replace(windows(), slides=())))


def test_none_where_other_dimensions_are_kept() -> None:
    """A dimension beside the channels and the taps, such as filters of a channel."""
    own = problem(windows())
    assert own.persistent_loop is not None
    assert not found(replace(own, extents=(*own.extents, 2)))


def test_chosen_for_large_images() -> None:
    chosen = choose_schedule(problem(windows()), TARGET)
    assert chosen in [replace(s, persistent_loop=chosen.persistent_loop) for s in found(problem(windows()))]


def test_consecutive_tiles_read_less_of_the_l2() -> None:
    schedule = found(problem(windows()))[0]
    assert schedule.persistent_loop is not None
    apart = replace(schedule, persistent_loop=replace(schedule.persistent_loop, consecutive=False))
    one, other = (work_of(s, problem(windows()), MACHINE) for s in (schedule, apart))
    assert one.l2_read < other.l2_read
    assert one.read == other.read == 2 * 64 * 96 * (56 * 56 + 62 * 62)


@pytest.mark.parametrize("change", [{"stages": 2}, {"peeled": True}])
def test_consecutive_tiles_are_neither_staged_nor_shared_out(change: dict[str, Any]) -> None:
    schedule = next(s for s in found(problem(windows())) if s.persistent_loop and s.persistent_loop.slices == 1)
    assert isinstance(schedule.persistent_loop, PersistentLoop)
    assert "consecutive" in (replace(schedule.persistent_loop, **change).check(schedule.layout) or "")


def sliced(channels: int = 96) -> Schedule:
    """A loop whose blocks have a slice of the channels."""
    schedules = found(problem(windows(), channels=channels))
    return next(s for s in schedules if s.persistent_loop and s.persistent_loop.slices == 3 and s.tile[3] == 32)


@pytest.mark.parametrize("channels", [96, 88])
def test_slices_cover_all_channels(channels: int) -> None:
    """Also where the last one is no whole slice."""
    schedule = sliced(channels)
    assert schedule.persistent_loop is not None
    assert schedule.persistent_loop.blocks % 3 == 0
    assert schedule.persistent_loop.sharing * 3 == schedule.persistent_loop.blocks <= 132 * schedule.blocks_per_sm
    assert check_schedule(schedule, problem(windows(), channels=channels).extents, frozenset({0, 1, 2}), TARGET) is None


def test_blocks_with_slices_leave_parts_of_partials() -> None:
    """As many numbers are combined as blocks of all channels leave, by a third of the blocks."""
    schedule = sliced()
    assert schedule.persistent_loop is not None
    work = work_of(schedule, problem(windows()), MACHINE)
    assert work.l2_written == schedule.persistent_loop.sharing * 96 * 49 * 4
    tiles = 64 * -(-56 // schedule.tile[1]) * (56 // schedule.tile[2])
    assert work.steps == -(-tiles // schedule.persistent_loop.sharing)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"slices": 0}, "0 slices"),
        ({"slices": 2}, "2 slices of 32"),
        ({"blocks": 131}, "no multiple"),
        ({"grid_reduction": "grid_sync", "blocks": 0}, "second_kernel"),
        ({"slices": 1}, "hold all 96 elements of dimension 3"),
    ],
)
def test_illegal_slices(change: dict[str, Any], reason: str) -> None:
    schedule = sliced()
    assert schedule.persistent_loop is not None
    wrong = replace(schedule, persistent_loop=replace(schedule.persistent_loop, **change))
    assert reason in (check_schedule(wrong, problem(windows()).extents, frozenset({0, 1, 2}), TARGET) or "")
    assert check_schedule(schedule, problem(windows()).extents, frozenset({0, 1, 2}), TARGET) is None


def test_slices_are_for_second_kernels() -> None:
    assert second_stages(sliced(), "auto") == ("second_kernel",)
    assert second_stages(sliced(), "grid_sync") == ()


def test_accesses_of_sliding_windows_share_an_address() -> None:
    """A thread takes 2 instructions for an access, beside one for each product and each element that it reads."""
    own = problem(windows())
    schedule = next(s for s in found(own) if s.blocks_per_sm * s.layout.threads % 128 == 0)
    layout = schedule.layout
    read = [held_elements(a, layout) for a in own.arrays]
    of_thread = layout.elements_per_thread + sum(read) + 2 * sum(read) / max(layout.vector)
    tiles = 64 * -(-56 // schedule.tile[1]) * (56 // schedule.tile[2]) * -(-96 // schedule.tile[3])
    work = work_of(schedule, own, MACHINE)
    expected = tiles * layout.threads * (of_thread + STEP_INSTRUCTIONS)
    assert work.instructions == pytest.approx(expected, rel=0.03)  # what blocks exchange in the end is the rest


def test_registers_hold_a_row_of_windows_at_a_time() -> None:
    """All 7 rows of 20 elements of 2 channels would not fit beside 98 accumulators, if all were held at once."""
    layouts = [s.layout for s in found(problem(windows())) if s.layout.vector[3] == 2 and s.layout.repeats[4] == 7]
    runs = [layout for layout in layouts if layout.repeats[2] == 14]
    assert runs
    assert all(layout.elements_per_thread <= MOST_PRODUCTS for layout in layouts)
    held = [held_elements(array, runs[0]) for array in problem(windows()).arrays]
    assert BASE_REGISTERS + 98 + sum(held) / 2 > TARGET.max_registers_per_thread


def with_bias() -> Problem:
    """The same with the sums of dy over all pixels, which vary along the channels alone."""
    own = problem(windows())
    bias = RowReduction(frozenset({0, 1, 2}), frozenset({3}), 4)
    loop = PersistentLoopProblem((0, 1, 2), frozenset({3, 4, 5}), 8, 0, False)
    return replace(own, reductions=(*own.reductions, bias), persistent_loop=loop)


def test_sums_along_the_channels_alone_take_few_registers() -> None:
    """One accumulator a channel, not one a tap: the layouts are those without these sums."""
    layouts = [{s.layout for s in found(own)} for own in (problem(windows()), with_bias())]
    assert len(layouts[1]) > 0.9 * len(layouts[0])


def test_partial_sums_along_the_channels_alone_are_few_bytes() -> None:
    schedule = next(s for s in found(with_bias()) if s in found(problem(windows())))
    alone, both = (work_of(schedule, own, MACHINE).l2_written for own in (problem(windows()), with_bias()))
    assert both == alone + alone / 49

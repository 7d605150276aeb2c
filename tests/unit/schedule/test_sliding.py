"""Schedules of elementwise kernels that read windows, and what their windows cover."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.orders.sliding import BASE_REGISTERS, MOST_PRODUCTS, sliding_schedules, tap_bytes
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.predict.counts.instructions import THREAD_INSTRUCTIONS
from mlirfuse.schedule.predict.counts.windows import NARROW_INSTRUCTIONS, WINDOW_INSTRUCTIONS
from mlirfuse.schedule.predict.predict import work_of
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import TARGETS

THREE = (-1, 0, 1)

TARGET = TARGETS["sm_90a"].with_sms(132)


def windows(step: int, offsets: tuple[int, ...] = THREE) -> ArrayAccess:
    """Windows over images of 56 x 56 x 128, along the second and third dimension."""
    along = (step, offsets)
    strides = (56 * 56 * 128, step * 56 * 128, step * 128, 1)
    return ArrayAccess((0, 1, 2, 3), strides, 2, 16, False, False, ((1, (0,)), along, along, (1, (0,))))


WRITTEN = replace(windows(1), written=True, windows=(), is_contiguous=True)


def problem(array: ArrayAccess, width: int = 56) -> Problem:
    growth = array.growth((None,) * 4)
    return Problem((256, 56, width, 128), frozenset(), 3, 8, 2 * growth + 2, 2 * growth, arrays=(array,))


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("offsets", [(0,), THREE, (0, 2, 4), (-1, 0, 5)])
def test_elements_of_neighbouring_windows(step: int, count: int, offsets: tuple[int, ...]) -> None:
    found = {number * step + offset for number in range(count) for offset in offsets}
    assert windows(step, offsets).elements((1, 1, count, 8)) == 8 * len(offsets) * len(found)


@pytest.mark.parametrize("step", [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(3, 2)])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("offsets", [(0,), (-1, 0), (0, 2, 4)])
def test_elements_of_windows_of_which_several_are_equal(step: Fraction, count: int, offsets: tuple[int, ...]) -> None:
    """As neighbouring pixels of a data gradient with strides read the same results."""
    found = {floor(number * step) + offset for number in range(count) for offset in offsets}
    own = replace(windows(1), windows=((1, (0,)), (1, (0,)), (step, offsets), (1, (0,))))
    assert own.elements((1, 1, count, 8)) == 8 * len(found)


def test_elements_of_many_windows() -> None:
    """Each element is read by three windows, and windows two apart have one element in common."""
    assert windows(1).growth((None,) * 4) == windows(1).growth((256, 56, 56, 128)) == 1
    assert windows(2).growth((None,) * 4) == windows(2).growth((256, 56, 56, 128)) == 4
    assert windows(1).elements((256, 56, 56, 128)) == 256 * 58 * 58 * 128
    assert windows(2).elements((1, 1 << 20, 1, 1)) == 3 * ((2 << 20) + 1)
    assert tap_bytes(problem(windows(1))) == 18


def test_runs_divide_the_extents() -> None:
    found = list(sliding_schedules(problem(windows(1)), 128, 800, TARGET))
    assert found
    for schedule in found:
        sides = zip(schedule.layout.extents[1:], (56, 56, 128), strict=True)
        assert all(extent % side == 0 for side, extent in sides)
        assert 2 * held_elements(windows(1), schedule.layout) <= 800


def test_none_where_windows_have_nothing_in_common() -> None:
    assert not list(sliding_schedules(problem(windows(3)), 128, 800, TARGET))
    assert not list(sliding_schedules(problem(windows(1, (0,))), 128, 800, TARGET))


def test_extents_of_which_no_run_divides() -> None:
    """Runs along the next dimension are left."""
    found = list(sliding_schedules(problem(windows(1), width=17), 128, 800, TARGET))
    assert found
    assert all(schedule.layout.run[2] == 1 and schedule.layout.run[1] > 1 for schedule in found)


def test_registers_of_runs_allow_their_blocks() -> None:
    """Sums of all results, and a row of taps of all rows of a thread, in halves, beside what every thread has; and of
    one row as wide as it is computed with.
    """
    own = replace(problem(windows(1)), arrays=(windows(1), WRITTEN))
    for schedule in sliding_schedules(own, 128, 800, TARGET):
        layout = schedule.layout
        rows, run = layout.run[1], layout.run[2]
        needed = BASE_REGISTERS + 8 * (rows * run + (rows / 2 + 1) * (run + 2))
        assert needed <= TARGET.max_registers_per_thread
        assert schedule.blocks_per_sm * layout.threads * needed <= TARGET.registers_per_sm


def test_no_more_products_than_code_has_room_for() -> None:
    nine = tuple(range(9))
    wide = replace(windows(1), windows=((1, (0,)), (1, nine), (1, nine), (1, (0,))))
    found = list(sliding_schedules(replace(problem(wide), vector=1), 128, 2400, TARGET))
    assert found
    assert all(schedule.layout.elements_per_thread * 81 <= MOST_PRODUCTS for schedule in found)


@pytest.mark.parametrize(("vector", "narrow"), [(1, True), (2, False)])
def test_instructions_of_runs(vector: int, narrow: bool) -> None:
    """One for each product, one conversion for each element that is read, and what accesses take."""
    own = replace(problem(windows(1)), vector=vector, instructions=27.0, sliding_instructions=(9.0, 9.0))
    own = replace(own, arrays=(windows(1), WRITTEN))
    schedule = next(s for s in sliding_schedules(own, 128, 800, TARGET) if s.layout.run[1:3] == (4, 4))
    layout = schedule.layout
    work = work_of(schedule, own, machine_of(TARGET))
    read, written = 36, 16
    accesses = WINDOW_INSTRUCTIONS * (read + written) + narrow * NARROW_INSTRUCTIONS * (read + written)
    each = vector * (9 * written + read) + accesses + THREAD_INSTRUCTIONS
    assert work.instructions == pytest.approx(work.blocks * layout.threads * each, rel=1e-3)


def test_residue_classes_are_read_by_all_pixels() -> None:
    """A box of the space reads no more elements than there are, as of the taps of four classes."""
    taps = ArrayAccess((1, 2, 3), (128, 128, 1), 2, 16, False, False, most=4 * 128)
    assert taps.elements((1, 1, 2, 128)) == 2 * 128
    assert taps.elements((256, 56, 56, 128)) == 4 * 128

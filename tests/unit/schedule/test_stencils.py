"""Stencils: what a box of the space reads, which layouts are proposed, and what their accesses are taken to move."""

from __future__ import annotations

from itertools import product

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import HELD_REGISTERS
from mlirfuse.schedule.orders.candidates import ordered_candidates
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_bytes, traffic
from mlirfuse.schedule.predict.predict import work_of
from mlirfuse.schedule.predict.work import device_of
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
MACHINE = machine_of(TARGET, "NVIDIA H200")
CROSS = ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1))
THREE = (1, (0, 1, 2))


def grid(extents: tuple[int, ...], bytes_: int = 4, views: tuple[tuple[int, ...], ...] = ()) -> Problem:
    """A stencil of three elements along each dimension, of which the space has all but the edges."""
    sides, result = [n + 2 for n in extents], list(extents)
    steps, own = ([_product(of[d + 1 :]) for d in range(len(of))] for of in (sides, result))
    dims = tuple(range(len(extents)))
    read = ArrayAccess(dims, tuple(steps), bytes_, 16, False, False, (THREE,) * len(dims), views=views)
    written = ArrayAccess(dims, tuple(own), bytes_, 16, True, True)
    vector = next(n for n in (8, 4, 2, 1) if n * bytes_ <= 16 and extents[-1] % n == 0)
    return Problem(extents, frozenset(), dims[-1], vector, 2 * bytes_, bytes_, arrays=(read, written))


def _product(extents: list[int]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total


@pytest.mark.parametrize("sides", [(1, 1, 1), (2, 3, 5), (4, 1, 2), (8, 4, 64)])
def test_elements_of_a_cross(sides: tuple[int, int, int]) -> None:
    found = {
        tuple(a + b for a, b in zip(place, tap, strict=True)) for place in product(*map(range, sides)) for tap in CROSS
    }
    (read, _) = grid((64, 64, 64), views=CROSS).arrays
    assert read.elements(sides) == len(found)
    assert read.taps == 7


def test_vectors_are_as_wide_as_the_array_and_no_narrower_than_the_results() -> None:
    assert {max(s.layout.vector) for s in ordered_candidates(grid((8190, 8189)))} == {4, 2, 1}
    assert {max(s.layout.vector) for s in ordered_candidates(grid((8190, 8190), 2))} == {8, 4, 2}


def test_warps_of_a_row_are_alike() -> None:
    """Rows of 398 elements are two tiles of seven warps, not one of eight and one of five."""
    fill = LayoutBuilder((16, 398), 1, 1)
    fill.add_lanes(1)
    fill.add_warps(1, most=8, even=True)
    assert fill.warps == [1, 7]
    fill = LayoutBuilder((16, 8192), 1, 1)
    fill.add_lanes(1)
    fill.add_warps(1, most=8, even=True)
    assert fill.warps == [1, 8]


def test_vectors_past_the_end_of_rows_are_written_piece_by_piece() -> None:
    """Pieces of 8 bytes lie 16 apart: a warp writes each sector twice, unless rows are whole vectors."""
    moved = []
    for columns in (8190, 8192):
        problem = grid((8190, columns))
        layout = BlockedLayout((1, 4), (1, 32), (1, 4), (8, 1), (1, 1))
        moved.append(traffic(Schedule((8, 512), layout), problem.writes, problem.extents, device_of(MACHINE)).written)  # type: ignore[arg-type]
    assert moved[0] > 1.9 * moved[1]


def test_halos_pass_beside_what_is_written() -> None:
    """They cost nothing as long as they are less than the results."""
    problem = grid((1022, 1022))
    layouts = [BlockedLayout((1, 2), (1, 32), (1, 8), (rows, 1), (1, 1)) for rows in (4, 16)]
    works = [work_of(Schedule((layout.extents[0], 512), layout), problem, MACHINE) for layout in layouts]
    assert works[0].l2_again > works[1].l2_again > 0
    assert works[0].l2_read == works[1].l2_read


def test_threads_have_registers_for_all_that_they_read_of_windows() -> None:
    """Every second element along each dimension, of 27 that each result needs: 64 results would read 891 of them."""
    extents = (127, 127, 127)
    dims, window = (0, 1, 2), (2, (1, 2, 3))
    read = ArrayAccess(dims, (2 * 257 * 257, 2 * 257, 2), 4, 16, False, False, (window,) * 3)
    written = ArrayAccess(dims, (127 * 127, 127, 1), 4, 16, True, True)
    problem = Problem(extents, frozenset(), 2, 1, 36, 32, arrays=(read, written))
    found = list(ordered_candidates(problem))
    assert any(s.layout.elements_per_thread > 1 for s in found)
    assert all(held_bytes(problem, s.layout) <= REGISTER_BYTES * HELD_REGISTERS for s in found)

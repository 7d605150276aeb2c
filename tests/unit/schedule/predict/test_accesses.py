"""Sectors and lines of elementwise schedules, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.predict.counts.accesses import thread_access, touched, traffic
from mlirfuse.schedule.predict.work import device_of
from mlirfuse.schedule.schedule import Schedule

EXTENTS = (1024, 1024)
ROWS = ArrayAccess((0, 1), (1024, 1), 4, 16, False, True)
COLUMNS = ArrayAccess((1, 0), (1024, 1), 4, 16, True, True)
ALONG = BlockedLayout((1, 4), (4, 8), (8, 1), (1, 1), (1, 1))
ACROSS = BlockedLayout((4, 1), (8, 4), (1, 8), (1, 1), (1, 1))
BYTES = 4 * 1024 * 1024
DEVICE = device_of(machine_of("sm_90a"))


def test_a_warp_touches_sectors() -> None:
    assert touched(((32, 4),), 4) == (4, 1)
    assert touched(((32, 16),), 16) == (16, 4)
    assert touched(((32, 4096),), 4) == (32, 32)
    assert touched(((8, 4), (4, 4096)), 4) == (4, 4)


def test_rows_that_are_read_along_are_read_once() -> None:
    moved = traffic(Schedule((32, 32), ALONG), [ROWS], EXTENTS, DEVICE)
    assert (moved.read, moved.written) == (BYTES, 0)


def test_weights_come_from_the_l1_where_it_has_room() -> None:
    """Each SM reads them once; rows of four megabytes are lost before another block of the SM reads them."""
    weights = ArrayAccess((1,), (1,), 4, 16, False, True)
    moved = traffic(Schedule((1, 1024), ALONG), [ROWS, weights], EXTENTS, DEVICE)
    assert moved.read == BYTES + 132 * 4 * 1024
    long = (4096, 1 << 20)
    moved = traffic(Schedule((1, 1024), ALONG), [weights], long, DEVICE)
    assert moved.read == 4 * long[0] * long[1]


def test_columns_that_are_written_across_are_written_in_parts_of_sectors() -> None:
    """Four lanes lie along a column, 16 bytes of it, one element a store."""
    moved = traffic(Schedule((32, 32), ALONG), [COLUMNS], EXTENTS, DEVICE)
    assert moved.written == BYTES * 2


def test_columns_through_shared_memory_are_written_whole() -> None:
    schedule = Schedule((32, 32), ALONG, transposed=TransposedTiles(0, ACROSS))
    moved = traffic(schedule, [ROWS, COLUMNS], EXTENTS, DEVICE)
    assert (moved.read, moved.written) == (BYTES, BYTES)
    assert moved.shared >= 2 * BYTES


@pytest.mark.parametrize(("vector", "width"), [(1, 1), (2, 2), (4, 4), (8, 8)])
def test_what_a_thread_has_side_by_side(vector: int, width: int) -> None:
    """Three channels of some pixels in half precision."""
    layout = BlockedLayout((vector, 1), (32, 1), (1, 1), (1, 3), (1, 1))
    array = ArrayAccess((0, 1), (3, 1), 2, 16, True, True)
    assert thread_access(array, layout, (1024, 3)) == width


def test_runs_of_a_thread_are_loaded_at_once() -> None:
    """Stores are as wide as vectors alone."""
    layout = BlockedLayout((1, 4), (4, 8), (1, 1), (1, 1), (1, 1), run=(4, 1))
    read = ArrayAccess((1, 0), (64, 1), 4, 16, False, True)
    assert thread_access(read, layout, (64, 64)) == 4
    assert thread_access(replace(read, written=True), layout, (64, 64)) == 1

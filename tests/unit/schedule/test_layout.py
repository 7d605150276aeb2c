"""Blocked layouts: what they cover, and when they are legal."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles

LAYOUT = BlockedLayout(vector=(1, 8), lanes=(1, 32), warps=(2, 4), repeats=(3, 2), blocks=(1, 2))


def test_shifted_rows_and_transposed_arrays_have_no_runs() -> None:
    shifted = BlockedLayout((1, 4), (2, 16), (1, 1), (1, 3), (1, 1), run=(2, 1), shift_to=(0, 4))
    assert "and no runs" in (shifted.check((4, 133)) or "")
    plain = BlockedLayout((1, 1), (8, 4), (1, 1), (2, 8), (1, 1))
    runs = replace(plain, repeats=(1, 8), run=(2, 1))
    assert "no `run`" in (TransposedTiles(0, runs).check(plain, (16, 32), (64, 64)) or "")


def test_sizes_follow_from_the_factors() -> None:
    assert LAYOUT.threads == 256
    assert LAYOUT.cluster == 2
    assert LAYOUT.vector_dim == 1
    assert LAYOUT.elements_per_thread == 48
    assert LAYOUT.extents == (6, 4096)
    assert LAYOUT.repeat_stride(1) == 1024
    assert [LAYOUT.exchanged(dims) for dims in ((0,), (1,), (0, 1), ())] == [2 * 2048, 4 * 6, 8, 0]


def test_warps_that_reduce_a_tile_have_its_reductions_apart() -> None:
    rows = BlockedLayout(vector=(1, 8), lanes=(1, 32), warps=(4, 1), repeats=(1, 4), blocks=(1, 1))
    assert rows.apart([0]) == replace(rows, warps=(1, 4), repeats=(1, 1))
    ragged = replace(rows, warps=(2, 2), repeats=(1, 3))
    assert ragged.apart([0]) == replace(ragged, warps=(1, 4), repeats=(1, 2))
    assert rows.apart([1]) is None  # a thread has one total
    assert replace(rows, repeats=(1, 1)).apart([0]) is None
    assert replace(rows, warps=(1, 4)).apart([0]) is None
    assert LAYOUT.apart([0]) is None  # blocks of a cluster hold the tile


def test_one_element_for_each_thread() -> None:
    tile = BlockedLayout((1, 1, 4), (2, 4, 4), (2, 1, 1), (3, 2, 1), (1, 1, 1), run=(1, 2, 1))
    threads = tile.of_threads([1, 2])
    assert threads == BlockedLayout((1, 1, 1), (2, 4, 4), (2, 1, 1), (3, 1, 1), (1, 1, 1))
    assert threads.extents == (12, tile.threads_along(1), tile.threads_along(2)) == (12, 4, 4)
    assert tile.of_threads([0]).run == tile.run
    assert tile.of_threads([0]).extents == (tile.threads_along(0), *tile.extents[1:])


def test_the_accumulators_of_a_wgmma_are_a_blocked_layout() -> None:
    """PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": element i of thread t of a warpgroup."""
    layout = BlockedLayout((1, 2), (8, 4), (4, 1), (1, 8), (1, 1), (2, 1))
    assert layout.extents == (64, 64)
    for t in (0, 5, 37, 127):
        for i in range(32):
            row, column = 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2
            own_row = t // 32 * layout.within(0) * layout.span(0) + t % 32 // 4 + layout.offset(0, i // 2 % 2)
            assert (own_row, layout.offset(1, i // 4) + 2 * (t % 4) + i % 2) == (row, column)


def test_a_layout_may_cover_more_than_its_tile() -> None:
    assert LAYOUT.check((6, 4096)) is None
    assert LAYOUT.check((5, 4000)) is None


@pytest.mark.parametrize(
    ("layout", "tile", "problem"),
    [
        (LAYOUT, (4096,), "the layout's (1, 8) is not one factor for each dimension of the tile (4096,)"),
        (
            replace(LAYOUT, blocks=()),
            (6, 4096),
            "the layout's () is not one factor for each dimension of the tile (6, 4096)",
        ),
        (replace(LAYOUT, repeats=(0, 2)), (6, 4096), "every factor of a layout must be at least 1"),
        (replace(LAYOUT, lanes=(1, 16)), (6, 2048), "lanes (1, 16) must be powers of two whose product is 32"),
        (replace(LAYOUT, vector=(2, 8)), (6, 4096), "vector (2, 8) is contiguous in more than one dimension"),
        (
            replace(LAYOUT, run=(1, 2)),
            (6, 4096),
            "run (1, 2) is longer than 1 along vectors of (1, 8), which would be longer ones",
        ),
        (
            replace(LAYOUT, run=(2,)),
            (6, 4096),
            "the layout's (2,) is not one factor for each dimension of the tile (6, 4096)",
        ),
        (LAYOUT, (6, 4104), "layout covers 4096 of the tile's 4104 elements in dimension 1"),
        (LAYOUT, (6, 4090), "vectors of 8 do not divide the tile's 4090 elements in dimension 1"),
    ],
)
def test_what_is_illegal_is_named(layout: BlockedLayout, tile: tuple[int, ...], problem: str) -> None:
    assert layout.check(tile) == problem


@given(st.integers(0, 5), st.integers(1, 8), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))
def test_every_element_has_one_owner(
    lane_bits: int, warps: int, repeats: int, blocks: int, inner: int, run: int
) -> None:
    """In a dimension of vectors, and where those of another one are, of runs."""
    lanes = 1 << lane_bits
    width = 2 if run == 1 else 1
    runs = (1, run) if run > 1 else ()
    layout = BlockedLayout(
        (3 - width, width), (32 // lanes, lanes), (1, warps), (1, repeats), (1, blocks), (1, inner), runs
    )
    per_block = layout.extents[1] // blocks
    owned = [
        b * per_block + layout.offset(1, fragment) + (w * inner * lanes + lane) * layout.step(1) + element
        for b in range(blocks)
        for fragment in range(layout.fragments(1))
        for w in range(warps)
        for lane in range(lanes)
        for element in range(width)
    ]
    assert sorted(owned) == list(range(layout.extents[1]))
    assert layout.elements_per_thread == layout.fragments(0) * layout.fragments(1) * 2


def test_hashes_and_properties_are_computed_once_and_hashes_stay_in_the_process() -> None:
    layout = BlockedLayout((4,), (32,), (2,), (1,), (1,))
    same = replace(layout)
    assert hash(layout) == hash(same)
    assert layout == same
    assert layout.extents is layout.extents == (256,)
    assert "_hash" in vars(layout)
    copy = pickle.loads(pickle.dumps(layout))
    assert "_hash" not in vars(copy)
    assert copy == layout
    assert hash(copy) == hash(layout)

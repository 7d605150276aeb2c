"""Where tiles lie in shared memory that go from one layout to another: lanes meet few bank conflicts."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from mlirfuse.distribution.memory.layout_conversions import Placement, placement_between
from mlirfuse.schedule.elementwise import transposed_schedule
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import BANK, BANKS_BYTES, BLOCK_THREADS
from mlirfuse.schedule.problem import Problem, TransposedProblem
from mlirfuse.schedule.schedule import Schedule


def _schedule(size: int, vectors: tuple[int, int], extents: tuple[int | None, ...] = (None, 8192)) -> Schedule:
    """Of two arrays with elements of so many bytes, accessed by vectors of so many of them along either dimension."""
    transposed = TransposedProblem(0, vectors[0], size, size)
    problem = Problem(extents, frozenset(), 1, vectors[1], 2 * size, size, transposed=transposed)
    schedule = transposed_schedule(problem, BLOCK_THREADS[0])
    assert schedule is not None
    return schedule


def _address(placement: Placement, index: tuple[int, ...]) -> int:
    straight = sum(i * step for i, step in zip(index, placement.strides, strict=True))
    return straight + index[placement.padded_dim] // placement.group * placement.gap


def _ways(placement: Placement, layout: BlockedLayout, size: int) -> int:
    """Most words of one bank among the lanes that are served together."""
    wide = layout.vector[-1] * size
    together = min(WARP, BANKS_BYTES // max(wide, BANK))
    lanes = list(product(*(range(n) for n in layout.lanes)))
    most = 0
    for first in range(0, WARP, together):
        words = set()
        for lane in lanes[first : first + together]:
            start = _address(placement, tuple(at * v for at, v in zip(lane, layout.vector, strict=True))) * size
            words |= {byte // BANK for byte in range(start, start + wide)}
        banks = [word % (BANKS_BYTES // BANK) for word in words]
        most = max(most, max(banks.count(bank) for bank in banks))
    return most


@pytest.mark.parametrize("extents", [(None, 8192), (40, 8192), (8192, 40)])
@pytest.mark.parametrize(
    ("size", "vectors", "ways"),
    [
        (1, (16, 16), 1),
        (2, (8, 8), 1),
        (2, (1, 1), 1),
        (4, (1, 1), 1),
        (4, (4, 1), 1),
        (4, (4, 4), 2),  # sixteen lanes with a stride of 16 bytes, as the accesses of the other layout need
        (8, (2, 2), 2),
        (2, (1, 8), 4),  # thirty-two lanes, 16 bytes apart
    ],
)
def test_few_lanes_want_the_same_bank(
    size: int, vectors: tuple[int, int], ways: int, extents: tuple[int | None, int | None]
) -> None:
    schedule = _schedule(size, vectors, extents)
    assert schedule.transposed is not None
    layouts = (schedule.transposed.layout, schedule.layout)
    placement = placement_between(*layouts, size)
    assert max(_ways(placement, layout, size) for layout in layouts) <= ways


@pytest.mark.parametrize(("size", "vectors"), [(1, (16, 16)), (2, (8, 8)), (2, (1, 8)), (4, (4, 1)), (8, (2, 2))])
def test_no_two_elements_share_a_place(size: int, vectors: tuple[int, int]) -> None:
    schedule = _schedule(size, vectors)
    assert schedule.transposed is not None
    for layouts in ((schedule.transposed.layout, schedule.layout), (schedule.layout, schedule.transposed.layout)):
        placement = placement_between(*layouts, size)
        addresses = {_address(placement, index) for index in product(*(range(n) for n in schedule.tile))}
        assert len(addresses) == prod(schedule.tile)
        assert min(addresses) == 0
        assert max(addresses) < placement.size


def test_tiles_of_several_dimensions_have_gaps_in_each() -> None:
    """The outer dimension steps over the gaps of the padded dimension."""
    one = BlockedLayout((1, 4, 1), (1, 8, 4), (2, 1, 1), (1, 1, 8), (1, 1, 1))
    other = BlockedLayout((1, 1, 4), (1, 4, 8), (2, 1, 1), (1, 8, 1), (1, 1, 1))
    placement = placement_between(one, other, 4)
    assert (placement.padded_dim, placement.group, placement.gap) == (1, 4, 4)
    assert placement.strides == (8 * (4 * 32 + 4), 32, 1)
    assert placement.size == 2 * 8 * (4 * 32 + 4)


@pytest.mark.parametrize(("size", "vector"), [(1, 16), (2, 8), (4, 4), (8, 2)])
def test_single_elements_across_rows_of_vectors_take_few_passes(size: int, vector: int) -> None:
    """A gap narrower than a vector keeps lanes of the other layout apart; accesses are then as wide as it is."""
    schedule = _schedule(size, (1, vector))
    assert schedule.transposed is not None
    along, across = schedule.layout, schedule.transposed.layout
    placement = placement_between(across, along, size)
    least = along.elements_per_thread * size * WARP / BANKS_BYTES
    assert placement.passes(along, size) <= 2 * least
    assert placement.passes(across, size) <= 2 * along.elements_per_thread * max(1, size / BANK)
    width = placement.width(along, size)
    places = {_address(placement, (row, column)) for row, column in product(range(64), range(64))}
    assert len(places) == 64 * 64
    assert max(places) < placement.size
    assert all(_address(placement, (row, column)) % width == 0 for row in range(8) for column in range(0, 64, vector))

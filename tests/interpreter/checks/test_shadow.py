"""Shadow memory by itself: ordering between blocks that the ops of today cannot all express."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.interpreter.state.machine import Cluster, ThreadBlock
from mlirfuse.interpreter.state.shadow import Shadow


def blocks(count: int) -> list[ThreadBlock]:
    return [ThreadBlock(index, count, (4, 1, 1), Cluster(1), 0, checks=True) for index in range(count)]


def at(*elements: int) -> np.ndarray:
    return np.array(elements)


def hand_over(source: ThreadBlock, target: ThreadBlock) -> None:
    """What a semaphore does: everything before in the source is before everything after in the target."""
    target.acquire(source.release())


def test_release_and_acquire_order_a_write_and_a_read():
    first, second = blocks(2)
    shadow = Shadow(16)
    assert shadow.write(at(1), 4, 0, first) is None
    violation = shadow.read(at(1), 4, 0, second)
    assert violation is not None
    assert violation.kind == "race"
    hand_over(first, second)
    assert shadow.read(at(1), 4, 0, second) is None


def test_order_is_transitive():
    first, second, third = blocks(3)
    shadow = Shadow(16)
    shadow.write(at(2), 4, 1, first)
    hand_over(first, second)
    hand_over(second, third)
    assert shadow.read(at(2), 4, 0, third) is None


def test_a_release_covers_only_what_came_before():
    first, second = blocks(2)
    shadow = Shadow(16)
    published = first.release()
    shadow.write(at(0), 4, 0, first)
    second.acquire(published)
    assert shadow.read(at(0), 4, 0, second) is not None


@pytest.mark.parametrize("ordered", [(0,), (0, 1), (0, 1, 2)])
def test_a_write_must_follow_every_reader(ordered):
    """Three blocks read an element at the same time; a fourth may write once all of them are before it."""
    *readers, writer = blocks(4)
    shadow = Shadow(16, written=True)
    for reader in readers:
        assert shadow.read(at(3), 4, 0, reader) is None
    for index in ordered:
        hand_over(readers[index], writer)
    violation = shadow.write(at(3), 4, 0, writer)
    assert (violation is None) == (len(ordered) == 3)


def test_readers_of_other_elements_do_not_matter():
    first, second, writer = blocks(3)
    shadow = Shadow(16, written=True)
    shadow.read(at(0, 1), 4, 0, first)
    shadow.read(at(1, 2), 4, 0, second)
    hand_over(first, writer)
    assert shadow.write(at(0), 4, 0, writer) is None
    assert shadow.write(at(1), 4, 0, writer) is not None


def test_a_thread_is_ordered_with_itself_and_not_with_its_neighbour():
    (block,) = blocks(1)
    shadow = Shadow(16)
    assert shadow.write(at(0), 4, 2, block) is None
    assert shadow.read(at(0), 4, 2, block) is None
    assert shadow.write(at(0), 4, 2, block) is None
    assert shadow.read(at(0), 4, 3, block) is not None
    block.advance()
    assert shadow.read(at(0), 4, 3, block) is None


def test_several_readers_and_then_one_of_them_writes():
    (block,) = blocks(1)
    shadow = Shadow(16, written=True)
    assert shadow.read(at(0, 0), 4, np.array([1, 2]), block) is None
    violation = shadow.write(at(0), 4, 1, block)
    assert violation is not None
    assert "several threads" in violation.earlier


def test_granules_get_finer_and_keep_their_history():
    first, second = blocks(2)
    shadow = Shadow(16)
    shadow.write(at(0), 8, 0, first)
    assert shadow.read(at(1), 4, 0, first) is None
    unwritten = shadow.read(at(2), 4, 0, first)
    assert unwritten is not None
    assert unwritten.kind == "unwritten"
    assert shadow.read(at(3), 2, 0, second) is not None, "still the first block's write"
    np.testing.assert_array_equal(shadow.written_elements(2, 8), [True, False])

"""The scheduler by itself: order, residency, waits, progress."""

from __future__ import annotations

import pytest

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter import progress as progress_module
from mlirfuse.interpreter.progress import BlockProgress
from mlirfuse.interpreter.scheduler import Schedule, Wait, run_blocks


def trace(count: int, schedule: Schedule, stops: int = 1) -> list[tuple[int, int]]:
    """Runs blocks that each stop a few times; returns (block, step) in the order of events."""
    events: list[tuple[int, int]] = []

    def block(index: int):
        for step in range(stops):
            events.append((index, step))
            yield None
        events.append((index, stops))

    groups = [lambda i=i: [(f"block {i}", block(i))] for i in range(count)]
    with BlockProgress("test", count, enabled=False) as progress:
        run_blocks(groups, 1, schedule, progress)
    return events


def test_launch_order_runs_each_block_to_its_end():
    assert trace(3, Schedule("launch")) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_reversed_order():
    assert [block for block, _ in trace(3, Schedule("reversed"))] == [2, 2, 1, 1, 0, 0]


def test_random_order_interleaves_and_repeats_by_seed():
    first = trace(5, Schedule("random", seed=4), stops=3)
    assert first == trace(5, Schedule("random", seed=4), stops=3)
    assert first != trace(5, Schedule("random", seed=5), stops=3)
    assert sorted(first) == [(block, step) for block in range(5) for step in range(4)]
    runs = [block for block, _ in first]
    assert runs != sorted(runs, key=runs.index), "blocks should interleave"


def test_at_most_n_blocks_are_started():
    started: set[int] = set()
    worst = 0

    def block(index: int):
        nonlocal worst
        started.add(index)
        worst = max(worst, len(started))
        yield None
        yield None
        started.remove(index)

    groups = [lambda i=i: [(f"block {i}", block(i))] for i in range(9)]
    with BlockProgress("test", 9, enabled=False) as progress:
        run_blocks(groups, 1, Schedule("random", seed=1, resident=3), progress)
    assert worst == 3


def serial_reduction(count: int, schedule: Schedule) -> list[int]:
    """Blocks that leave in the order of their ids: needs the earlier ones to be resident."""
    left: list[int] = []

    def block(index: int):
        yield Wait(lambda: f"ticket {index}", lambda: len(left) == index)
        left.append(index)

    groups = [lambda i=i: [(f"block {i}", block(i))] for i in range(count)]
    with BlockProgress("test", count, enabled=False) as progress:
        run_blocks(groups, 1, schedule, progress)
    return left


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_waits_are_served_when_all_blocks_are_resident(order):
    assert serial_reduction(4, Schedule(order)) == [0, 1, 2, 3]


def test_a_protocol_that_needs_launch_order_fails_reversed_with_few_resident():
    assert serial_reduction(4, Schedule("launch", resident=2)) == [0, 1, 2, 3]
    with pytest.raises(InterpreterError) as caught:
        serial_reduction(4, Schedule("reversed", resident=2))
    text = str(caught.value)
    assert "none of the 2 resident blocks can continue; 2 more blocks cannot be dispatched" in text
    assert "block 3 waits for ticket 3" in text
    assert "block 2 waits for ticket 2" in text


@pytest.mark.parametrize(
    ("arguments", "message"), [({"order": "sorted"}, "unknown block order"), ({"resident": 0}, "resident=0")]
)
def test_schedules_that_make_no_sense(arguments, message):
    with pytest.raises(InterpreterError, match=message):
        Schedule(**arguments)


def test_a_bar_is_drawn_only_after_a_while(monkeypatch, capsys):
    def run() -> str:
        with BlockProgress("kernel_7", 2, enabled=True) as progress:
            progress.advance()
            progress.advance()
        return capsys.readouterr().err

    assert run() == ""
    monkeypatch.setattr(progress_module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "kernel_7" in run()

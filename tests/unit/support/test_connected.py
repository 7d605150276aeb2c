"""Groups of items that have something in common."""

from __future__ import annotations

from mlirfuse.support.connected import connected


def test_items_are_together_by_way_of_others() -> None:
    marks = {"a": {1}, "b": {2}, "c": set(), "d": {3}, "e": {1, 2}}
    assert connected(marks, marks.__getitem__) == [["c"], ["d"], ["a", "b", "e"]]


def test_nothing_is_no_group() -> None:
    assert connected([], set) == []

"""Tests with a pairwise sample of their parameters: each two values occur together, and all in the full run."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from tests.support import pairwise as module
from tests.support.pairwise import combined, every, in_turn, pairwise

VALUES: dict[str, Any] = {"a": (0, 1, 2), "b": (0, 1), "c": (0, 1, 2, 3)}


def test_each_two_allowed_values_occur_together() -> None:
    rows = list(pairwise(VALUES, lambda row: (row.get("a"), row.get("c")) != (2, 3)))
    assert {(row["b"], row["c"]) for row in rows} == {(b, c) for b in VALUES["b"] for c in VALUES["c"]}
    assert {(row["a"], row["c"]) for row in rows} == {(a, c) for a in VALUES["a"] for c in VALUES["c"]} - {(2, 3)}


def test_a_sample_is_smaller_and_the_same_each_time() -> None:
    rows = list(pairwise(VALUES))
    assert rows == list(pairwise(VALUES))
    assert len(rows) < len(list(every(VALUES))) == 24
    for a, b in combinations(VALUES, 2):
        assert {(row[a], row[b]) for row in rows} == set(product(VALUES[a], VALUES[b]))


def test_a_full_run_has_all_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL", True)
    assert combined(VALUES).args == (["a", "b", "c"], list(product(*VALUES.values())))
    allowed = combined(VALUES, lambda row: (row.get("a"), row.get("c")) != (2, 3)).args[1]
    assert len(allowed) == 22


def test_two_parameters_are_combined_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL", False)
    assert combined({"m, n": [(1, 2), (3, 4)], "k": "xy"}).args == (
        ["m", "n", "k"],
        [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")],
    )


def test_values_take_turns_and_meet_as_many_others_as_they_can() -> None:
    rows = list(in_turn(every({"a": (0, 1, 2), "b": "wxyz"}), {"c": (True, False), "d": (5, 6, 7)}))
    assert len(rows) == 12
    for one, other, most in (("a", "c", 6), ("b", "c", 8), ("a", "d", 9), ("b", "d", 10), ("c", "d", 6)):
        assert len({(row[one], row[other]) for row in rows}) == most, (one, other)


def test_a_full_run_has_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for full, tests in ((False, 6), (True, 24)):
        monkeypatch.setattr(module, "FULL", full)
        names, rows = combined({"a": range(3), "b": range(2)}, turns={"c, d": [(0, 1), (2, 3), (4, 5), (6, 7)]}).args
        assert names == ["a", "b", "c", "d"]
        assert len(rows) == len(set(rows)) == tests

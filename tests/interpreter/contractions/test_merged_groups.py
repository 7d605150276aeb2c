"""Convolutions whose groups are merged in every way, whatever prediction chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.passes.groups import merge_groups
from tests.support.convolutions import Case, integers, passes, random_case
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined, some

DTYPES: list[Any] = [np.float16, np.float32, np.int32]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[tuple[int, int]]]:
    """Has sums over groups merged in the way of that number, of all that there are; returns a list of those taken."""

    def start(number: int) -> list[tuple[int, int]]:
        taken: list[tuple[int, int]] = []

        def chosen(module: Any, function: Any, found: Any) -> tuple[tuple[int, int], str]:
            ways = list(merge_groups.merges(found))
            taken.append(ways[number % len(ways)])
            return taken[-1], "as the test asks"

        monkeypatch.setattr(merge_groups, "fastest", chosen)
        return taken

    return start


@pytest.mark.parametrize("seed", some(range(300), 24))
def test_random_parameters(seed: int, choose: Callable[[int], list[tuple[int, int]]]) -> None:
    """Any number of groups, of one channel or filter too: the result and both gradients of whole numbers, exactly."""
    rng = np.random.default_rng(seed)
    rank = 1 + seed // 3 % 3
    groups = int(rng.choice([2, 3, 4, 5, 6, 8, 12]))
    channels, filters = (groups * int(n) for n in rng.integers(1, 6, 2))
    case = replace(random_case(rng, rank, 7 if rank < 3 else 4), groups=groups, channels=channels, filters=filters)
    arrays = [integers(rng, shape, DTYPES[seed % 3]) for shape in case.shapes]
    taken = choose(seed)
    for function, numbers, reference in passes(case, None).values():
        given = [arrays[n] for n in numbers]
        found = mf.fuse(function, target="interpret")(*given)
        assert (found == reference(case, *(a.astype(np.int64) for a in given))).all()
    assert len(taken) >= 2 * (channels > groups < filters)


LINES = Case(2, (5, 4), 96, 96, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2)
"""Two groups of 48 channels, of which a line has 64."""

CASES = [
    LINES,
    replace(LINES, groups=6),
    replace(LINES, channels=64, filters=128, groups=16, taps=(3, 2), stride=(2, 1), padding=((1, 1), (1, 0))),
    replace(LINES, channels=48, filters=24, groups=12, stride=(1, 2), dilation=(2, 1)),
    replace(LINES, sizes=(4, 3), channels=64, filters=32, groups=4, taps=(1, 2), padding=((0, 0), (0, 0))),
]


@combined({"case": CASES, "name": ["forward", "wgrad", "dgrad"], "number": range(8)})
def test_kernels(case: Case, name: str, number: int, choose: Callable[[int], list[tuple[int, int]]]) -> None:
    rng = np.random.default_rng(number)
    taken = choose(number)
    function, numbers, reference = passes(case, mf.float32 if name == "wgrad" else None)[name]
    arrays = [integers(rng, case.shapes[n], np.float16) // 2 for n in numbers]
    module = module_at("gpu", function, specs_of(arrays))
    (found,) = interpreter.run(module, "lambda", arrays, order="random", seed=1)
    assert taken
    assert (found == reference(case, *(array.astype(np.int64) for array in arrays))).all()


@pytest.mark.parametrize("name", ["forward", "wgrad", "dgrad"])
@pytest.mark.parametrize("merged", [1, 2])
def test_lines_are_copied_by_tensor_maps(name: str, merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one group of 48 channels, and of both."""
    monkeypatch.setattr(merge_groups, "fastest", lambda *_: ((merged, 64), "as the test asks"))
    function, numbers, reference = passes(LINES, mf.float32)[name]
    arrays = [integers(np.random.default_rng(1), LINES.shapes[n], np.float16) for n in numbers]
    module = module_at("gpu", function, specs_of(arrays))
    assert "fuse.async_load" in str(module)
    (found,) = interpreter.run(module, "lambda", arrays, order="random", seed=1)
    assert (found == reference(LINES, *(array.astype(np.int64) for array in arrays))).all()


def test_infinities_stay_in_their_product(choose: Callable[[int], list[tuple[int, int]]]) -> None:
    """Of a batch whose neighbours lie side by side, as groups do."""
    x, w = np.ones((33, 3, 1, 2), np.float32), np.ones((33, 3, 2, 3), np.float32)
    x[5, 1, 0, 1] = np.inf
    taken = choose(0)
    (found,) = interpreter.run(module_at("gpu", lambda x, w: x @ w, specs_of([x, w])), "lambda", [x, w])
    assert not taken
    expected = np.full((33, 3, 1, 3), 2, np.float32)
    expected[5, 1] = np.inf
    np.testing.assert_array_equal(found, expected)


def test_batches_of_rows_that_lie_apart() -> None:
    """Merged groups are no view of them, and would need a copy."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((4, 4, 2), (2, 2, 2)))
    rows = x[::2, :1]
    found = mf.fuse(lambda x, w: x @ w, target="interpret")(rows, w)
    np.testing.assert_array_equal(np.asarray(found), rows @ w)

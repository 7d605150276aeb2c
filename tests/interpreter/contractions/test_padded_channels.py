"""Convolutions whose channels are padded to whole lines, whatever prediction says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.passes.groups import pad_channels
from tests.support.convolutions import Case, integers, passes, random_case
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined, some

DTYPES: list[Any] = [np.float16, np.float32, np.int32]


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has channels padded wherever they can be; the channels that were."""
    taken: list[int] = []

    def chosen(module: Any, function: Any, found: Any) -> tuple[float, float]:
        taken.append(found.channels)
        return 2.0, 1.0

    monkeypatch.setattr(pad_channels, "times", chosen)
    return taken


@pytest.mark.parametrize("seed", some(range(200), 18))
def test_random_parameters(seed: int, padded: list[int]) -> None:
    """The result and both gradients of whole numbers, exactly; one spatial dimension, two and three."""
    rng = np.random.default_rng(seed)
    rank = 1 + seed // 3 % 3
    case = random_case(rng, rank, 7 if rank < 3 else 4)
    case = replace(case, groups=1, channels=int(rng.integers(2, 9)), filters=int(rng.integers(2, 9)))
    arrays = [integers(rng, shape, DTYPES[seed % 3]) for shape in case.shapes]
    for function, numbers, reference in passes(case, None).values():
        given = [arrays[n] for n in numbers]
        found = mf.fuse(function, target="interpret")(*given)
        assert (found == reference(case, *(a.astype(np.int64) for a in given))).all()
    assert padded or all(taps == 1 for taps in case.taps)


LINES = Case(2, (5, 4), 48, 24, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
"""48 channels and 24 filters, where lines have 64."""

CASES = [
    LINES,
    replace(LINES, taps=(3, 2), stride=(2, 1), padding=((1, 1), (1, 0))),
    replace(LINES, channels=96, dilation=(2, 1)),
    replace(LINES, channels=16, filters=32, taps=(2, 2), stride=(2, 2), padding=((0, 0), (0, 0))),
]


@combined({"case": CASES, "name": ["forward", "wgrad", "dgrad"]})
def test_kernels(case: Case, name: str, padded: list[int]) -> None:
    """Of one thread's code; tensor maps copy the lines of windows."""
    function, numbers, reference = passes(case, mf.float32 if name == "wgrad" else None)[name]
    arrays = [integers(np.random.default_rng(1), case.shapes[n], np.float16) // 2 for n in numbers]
    module = module_at("gpu", function, specs_of(arrays))
    (found,) = interpreter.run(module, "lambda", arrays, order="random", seed=1)
    assert (found == reference(case, *(array.astype(np.int64) for array in arrays))).all()
    assert padded
    assert "fuse.async_load" in str(module) or name == "dgrad"


def test_channels_of_a_batch_stay(padded: list[int]) -> None:
    """Each channel has filters of its own: channels are a batch, not a sum or columns."""
    x, w = np.ones((2, 8, 6), np.float16), np.ones((6, 3, 1), np.float16)
    mf.fuse(lambda x, w: mf.conv1d(x, w, padding=1, groups=6), target="interpret")(x, w)
    assert not padded

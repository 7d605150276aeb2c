"""Images of few pixels as one dimension, whatever is predicted, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.passes.kernels import flatten_rows
from tests.support.views.planes import CASES, random_case, with_numbers


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_planes(name: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[object] = []
    if not apart:
        replace = flatten_rows._replace
        monkeypatch.setattr(flatten_rows, "_loss", lambda *_: None)
        monkeypatch.setattr(flatten_rows, "_replace", lambda *given: (applied.append(given), replace(*given)))
    case = CASES[name]
    arrays = case.arrays()
    case.check(np.asarray(mf.fuse(with_numbers(case), target="interpret")(*arrays)), arrays)
    assert apart or applied or name == "one an image"  # which varies along an extent of run time


@pytest.mark.parametrize("seed", range(60))
def test_random_operands(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatten_rows, "_loss", lambda *_: None)
    case = random_case(seed)
    arrays = case.arrays()
    case.check(np.asarray(mf.fuse(with_numbers(case), target="interpret")(*arrays)), arrays)

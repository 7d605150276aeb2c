"""Reductions over static extents that no block holds: what the heuristics choose, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.static_reductions import CASES


@pytest.mark.parametrize("name", CASES)
def test_what_no_block_holds_is_shared(name: str) -> None:
    case = CASES[name]
    arrays = case.arrays(seed=1)
    case.check(np.asarray(mf.fuse(case.fn, target="interpret")(*arrays)), arrays)

"""Elementwise functions of transposed arrays, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from transposes import CASES

import mlirfuse as mf


@pytest.mark.parametrize("name", CASES)
def test_transposed_arrays(name: str) -> None:
    case = CASES[name]
    arrays = case.arrays()
    case.check(np.asarray(mf.fuse(case.fn, target="interpret")(*arrays)), arrays)

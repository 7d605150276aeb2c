"""Rows that are reduced in parts, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.split_rows import CASES, COLUMNS, total


@pytest.mark.parametrize("name", CASES)
def test_parts_of_rows(name: str) -> None:
    case = CASES[name]
    arrays = case.arrays(seed=1)
    case.check(np.asarray(mf.fuse(case.fn, target="interpret")(*arrays)), arrays)


def test_a_scalar_argument() -> None:
    """A scalar argument goes to the kernel of parts, and to that of rows."""
    x = np.random.default_rng(2).standard_normal((3, COLUMNS)).astype(np.float16)
    fused = mf.fuse(lambda x, s: mf.sum(x.astype(mf.float32) * (s + 1), axis=1) * s, target="interpret")
    np.testing.assert_allclose(fused(x, 2.5), x.astype(np.float64).sum(1) * 8.75, rtol=1e-4, atol=1e-2)


def test_any_number_of_rows() -> None:
    """One compilation serves all: none, one and several."""
    x = np.random.default_rng(3).standard_normal((4, COLUMNS)).astype(np.float16)
    fused = mf.fuse(total, target="interpret")
    for rows in (0, 2, 4):
        np.testing.assert_allclose(fused(x[:rows]), x[:rows].astype(np.float64).sum(1), rtol=1e-4, atol=1e-2)

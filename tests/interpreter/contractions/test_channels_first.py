"""Convolutions whose channels are the first dimension but one: where their arrays are transposed."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.convolutions import Case, channels_first_block, forward, integers, reference_block


def test_channels_first_is_transposed_once() -> None:
    rng = np.random.default_rng(6)
    case = Case(2, (6, 5), 8, 16, (3, 2), (2, 1), ((1, 0), (0, 1)), (1, 2))
    x, w, _ = (integers(rng, shape, np.float16) for shape in case.shapes)
    first = (0, 3, 1, 2)
    fused = mf.fuse(lambda x, w: mf.conv2d(x, w, layout="NCHW", **case.parameters), target="interpret")
    found: Any = fused(*(np.ascontiguousarray(a.transpose(first)) for a in (x, w)))
    assert (found == forward(case, x.astype(np.int64), w.astype(np.int64)).transpose(first)).all()


def test_channels_first_between_convolutions() -> None:
    """The result is a view with the channels last; an array that is given is written with the channels first."""
    rng = np.random.default_rng(12)
    x, w = (rng.integers(-1, 2, shape) for shape in ((2, 8, 5, 4), (8, 8, 3, 3)))
    s = rng.integers(-1, 2, (8, 1, 1))
    want = reference_block(x, w, s)
    fused = mf.fuse(channels_first_block, target="interpret")
    arrays = [a.astype(np.float16) for a in (x, w, s)]
    found = fused(*arrays)
    assert (found == want).all()
    assert found.transpose(0, 2, 3, 1).flags.c_contiguous
    given = np.full(want.shape, np.nan, np.float16)
    fused(*arrays, out=given)
    assert (given == want).all()

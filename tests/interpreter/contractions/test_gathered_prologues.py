"""Elementwise ops on what a convolution gathers, in the convolution's kernel: padding stays zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.gathered_prologues import CASES, normalised
from tests.support.convolutions import Case, forward, integers
from tests.support.harnesses.compiling import specs_of
from tests.support.pairwise import combined

APART = {("1x1", "wgrad"), ("5 channels", "forward"), ("5 channels", "wgrad")}
"""Products over several dimensions compute no operand; and 5 channels are copied beside zeros first."""


@combined({"case": CASES, "name": ["forward", "wgrad", "dgrad"]}, turns={"dtype": ["float16", "float32"]})
def test_every_pass_is_exact(case: str, name: str, dtype: str) -> None:
    given = normalised(name, CASES[case], dtype)
    found = mf.fuse(given.fn, target="interpret")(*given.inputs)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64), given.expected)


@combined({"case": CASES, "name": ["forward", "wgrad", "dgrad"]}, turns={"dtype": ["float16", "float32"]})
def test_small_ones_are_one_kernel(case: str, name: str, dtype: str) -> None:
    given = normalised(name, CASES[case], dtype)
    compiled = mf.fuse(given.fn, target="sm_90a").lower(*specs_of(given.inputs)).compile()
    fused = "fuse-prologues: applied" in compiled.explain(verbose=True)
    assert fused == ((case, name) not in APART)


def test_what_is_read_elsewhere_is_computed_once() -> None:
    given = normalised("forward", CASES["padded"], "float16")

    def also_returned(a: Any, scale: Any, shift: Any, w: Any) -> Any:
        h = mf.maximum(a.astype(mf.float32) * scale + shift, 0).astype(a.dtype)
        return mf.conv2d(h, w, padding=1), h

    compiled = mf.fuse(also_returned, target="sm_90a").lower(*specs_of(given.inputs)).compile()
    assert "its results are used elsewhere as well" in compiled.explain(verbose=True)
    found, _ = mf.fuse(also_returned, target="interpret")(*given.inputs)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64), given.expected)


@pytest.mark.parametrize("channels", [6, 8, 12])
def test_accesses_of_a_single_pixel_stay_inside_of_a_tap(channels: int) -> None:
    """The view has one row, so that no stride says how long its contiguous runs are."""
    case = Case(1, (5, 5), channels, 16, (3, 3), (3, 3), ((0, 0), (0, 0)), (1, 1))
    rng = np.random.default_rng(channels)
    x, w, _ = (integers(rng, shape, np.float16) for shape in case.shapes)
    found = mf.fuse(lambda x, w: mf.conv2d(x, w, **case.parameters), target="interpret")(x, w)
    np.testing.assert_array_equal(np.asarray(found), forward(case, x.astype(np.int64), w.astype(np.int64)))

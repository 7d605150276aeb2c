"""Convolutions as traced: values for every combination of parameters, and errors at the user's line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlirfuse as mf
from mlirfuse.errors import ArgumentError, DTypeError, MlirFuseError, ShapeError
from tests.support.convolutions import PASSES, Case, dgrad, forward, integers, random_case, wgrad
from tests.support.harnesses.builder_harness import run

X, W, DY = np.ones((2, 8, 9, 6), np.float32), np.ones((4, 3, 3, 6), np.float32), np.ones((2, 6, 7, 4), np.float32)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_all_passes(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, rank, 7 if rank < 3 else 4)
    x, w, dy = (integers(rng, shape, np.int32) for shape in case.shapes)
    convolve, of_filters, of_images = PASSES[rank - 1]
    assert (run(lambda x, w: convolve(x, w, **case.parameters), x, w) == forward(case, x, w)).all()
    found = run(lambda x, dy: of_filters(x, dy, kernel_size=case.taps, **case.parameters), x, dy)
    assert (found == wgrad(case, x, dy)).all()
    found = run(lambda dy, w: of_images(dy, w, input_size=case.sizes, **case.parameters), dy, w)
    assert (found == dgrad(case, dy, w)).all()


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 5])
def test_same_padding(stride: int, taps: int) -> None:
    w = np.ones((4, taps, taps, 6), np.float32)
    found = run(lambda x, w: mf.conv2d(x, w, stride=stride, padding="same"), X, w)
    assert found.shape == (2, -(-8 // stride), -(-9 // stride), 4)


def test_causal() -> None:
    rng = np.random.default_rng(1)
    x, w = integers(rng, (2, 10, 3), np.int32), integers(rng, (5, 4, 3), np.int32)
    case = Case(2, (10,), 3, 5, (4,), (1,), ((6, 0),), (2,))
    assert (run(lambda x, w: mf.conv1d(x, w, padding=(6, 0), dilation=2), x, w) == forward(case, x, w)).all()


def test_channels_first() -> None:
    rng = np.random.default_rng(2)
    case = Case(2, (6, 5), 4, 6, (3, 2), (2, 1), ((1, 0), (0, 1)), (1, 2), 2)
    x, w, dy = (integers(rng, shape, np.int32) for shape in case.shapes)
    first = (0, 3, 1, 2)
    x1, w1, dy1 = (np.ascontiguousarray(a.transpose(first)) for a in (x, w, dy))
    p = case.parameters
    found = run(lambda x, w: mf.conv2d(x, w, layout="NCHW", **p), x1, w1)
    assert (found == forward(case, x, w).transpose(first)).all()
    found = run(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=case.taps, layout="NCHW", **p), x1, dy1)
    assert (found == wgrad(case, x, dy).transpose(first)).all()
    found = run(lambda dy, w: mf.conv2d_dgrad(dy, w, input_size=case.sizes, layout="NCHW", **p), dy1, w1)
    assert (found == dgrad(case, dy, w).transpose(first)).all()


def test_dtypes() -> None:
    half = X.astype(np.float16), W.astype(np.float16)
    assert run(mf.conv2d, *half).dtype == np.float16
    assert run(lambda x, w: mf.conv2d(x, w, dtype=mf.float32), *half).dtype == np.float32


BAD: list[tuple[Any, type[MlirFuseError], str]] = [
    (lambda: mf.fuse(lambda x, w: mf.conv2d(x, w, stride=0), target="interpret")(X, W), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d, X, W, dilation=(1, 0)), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d, X, W, padding=-1), ArgumentError, "negative"),
    (lambda: call(mf.conv2d, X, W, padding=((1, -2), 0)), ArgumentError, "negative"),
    (lambda: call(mf.conv2d, X, W, padding="full"), ArgumentError, '"same"'),
    (lambda: call(mf.conv2d, X, W, padding=(1, 2, 3)), ArgumentError, "2 spatial"),
    (lambda: call(mf.conv2d, X, W, stride=(1, 2, 3)), ArgumentError, "3 entries"),
    (lambda: call(mf.conv2d, X, W, groups=0), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d, X, W, groups=4), ShapeError, "do not divide 6 channels"),
    (lambda: call(mf.conv2d, X, W, groups=3), ShapeError, "do not divide 4 filters"),
    (lambda: call(mf.conv2d, X, W, groups=2), ShapeError, "w needs 3 channels"),
    (lambda: call(mf.conv2d, X, W, layout="NDHW"), ArgumentError, "NCHW"),
    (lambda: call(mf.conv2d, X, W, layout="NCHW"), ShapeError, "channels"),
    (lambda: call(mf.conv2d, X[0], W), ShapeError, "4 dimensions"),
    (lambda: call(mf.conv2d, X, W, dilation=5), ShapeError, "reaches over 11 elements"),
    (lambda: call(mf.conv2d, X > 0, W > 0), DTypeError, "bool"),
    (lambda: call(mf.conv2d, X, W, precision="exact"), ArgumentError, "tf32"),
    (
        lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=(3, 2)),
        ShapeError,
        r"the convolution's result has \(2, 6, 8, 4\): P, Q = 6, 8",
    ),
    (
        lambda: call(mf.conv2d_wgrad, X, DY[..., :3], kernel_size=3, layout="NCHW"),
        ShapeError,
        r"dy has shape \(2, 6, 7, 3\), and the convolution's result has \(2, 6, 7, 4\): P, Q = 7, 4",
    ),
    (lambda: call(mf.conv2d_wgrad, X, DY[:1], kernel_size=3), ShapeError, r"has \(2, 6, 7, 4\)"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=9), ShapeError, "reaches over 9 elements"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=3, stride=0), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=3, padding=(-1, 0)), ArgumentError, "negative"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=3, groups=4), ShapeError, "do not divide 6 channels"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=3, layout="CHWN"), ArgumentError, "NCHW"),
    (lambda: call(mf.conv2d_dgrad, DY, W, input_size=(8, 9), stride=0), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d_dgrad, DY, W, input_size=(8, 9), padding=-1), ArgumentError, "negative"),
    (lambda: call(mf.conv2d_dgrad, DY, W, input_size=(8, 9), groups=3), ShapeError, "do not divide 4 filters"),
    (lambda: call(mf.conv2d_dgrad, DY, W, input_size=2), ShapeError, "reaches over 3 elements"),
    (lambda: call(mf.conv2d_dgrad, DY, W[:2], input_size=(8, 9)), ShapeError, r"result has \(2, 6, 7, 2\)"),
    (lambda: call(mf.conv2d, X, W, stride=1.5), MlirFuseError, "stride"),
    (lambda: call(mf.conv2d_wgrad, X, DY, kernel_size=0), ArgumentError, "at least 1"),
    (lambda: call(mf.conv2d_dgrad, DY, W, input_size=(9, 9)), ShapeError, r"result has \(2, 7, 7, 4\)"),
]


def call(fn: Any, *arrays: Any, **options: Any) -> Any:
    return mf.fuse(lambda *a: fn(*a, **options), target="interpret")(*arrays)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number: int) -> None:
    act, error, message = BAD[number]
    with pytest.raises(error, match=message) as caught:
        act()
    line = re.search(r"test_convolutions\.py:(\d+): ", str(caught.value))
    assert line is not None
    named = Path(__file__).read_text().splitlines()[int(line[1]) - 1]
    assert "mf.fuse(lambda" in named

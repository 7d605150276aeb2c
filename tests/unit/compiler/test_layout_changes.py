"""What `explain` says of transpositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf

FREE = "transpositions: all are views, or the order in which kernels read"
X, W, S = (mf.TensorSpec(shape, mf.float16) for shape in ((2, 64, 14, 14), (64, 64, 3, 3), (64, 1, 1)))
LAST = (0, 2, 3, 1)
FIRST = (0, 3, 1, 2)


def convolved(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, padding=1, layout="NCHW")


def activated(x: Any, w: Any, s: Any) -> Any:
    return convolved(mf.maximum(x * s, 0), w)


def added(x: Any, w: Any, s: Any, r: Any) -> Any:
    return mf.maximum(convolved(x, w) * s + r, 0)


def twice(x: Any, w: Any, s: Any) -> Any:
    return convolved(mf.maximum(convolved(x, w) * s, 0), w)


def of_channels_last(x: Any, w: Any) -> Any:
    """As an array in the other order of memory, seen with the channels first."""
    return convolved(mf.permute_dims(x, FIRST), mf.permute_dims(w, FIRST))


def of_pixels(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, layout="NCHW")


def last(spec: mf.TensorSpec) -> mf.TensorSpec:
    return mf.TensorSpec(tuple(spec.shape[axis] for axis in LAST), mf.float16)


@pytest.mark.parametrize(
    ("function", "specs", "kernels", "line"),
    [
        (
            convolved,
            (X, W),
            3,
            "transpositions: convolved_0 transposes x, convolved_1 transposes w, the others cost nothing",
        ),
        (
            activated,
            (X, W, S),
            3,
            "transpositions: activated_0 transposes what it computes from x and s, activated_1 transposes w, "
            "the others cost nothing",
        ),
        (
            added,
            (X, W, S, X),
            4,
            "transpositions: added_0 transposes x, added_1 transposes w, "
            "added_3 transposes what it computes from the result of added_2 and r",
        ),
        (
            twice,
            (X, W, S),
            4,
            "transpositions: twice_0 transposes x, twice_1 transposes w, the others cost nothing",
        ),
        (of_channels_last, (last(X), last(W)), 1, FREE),
        (of_pixels, (X, mf.TensorSpec((64, 64, 1, 1), mf.float16)), 1, FREE),
        (lambda x: x.T * 2, (mf.TensorSpec((512, 64), mf.float16),), 1, "transpositions: lambda_0 transposes x"),
        (lambda x: x.T, (mf.TensorSpec((512, 64), mf.float16),), 0, FREE),
        (lambda x: x * 2, (mf.TensorSpec((512, 64), mf.float16),), 1, None),
    ],
)
def test_kernels_that_transpose_are_named(
    function: Callable[..., Any], specs: tuple[mf.TensorSpec, ...], kernels: int, line: str | None
) -> None:
    compiled = mf.fuse(function, target="sm_90a").lower(*specs).compile(choose_again=False)
    assert len(compiled.program.launches) == kernels
    found = [each for each in compiled.explain().splitlines() if each.startswith("transpositions")]
    assert found == ([] if line is None else [line])

"""Errors of `concat` and `stack`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.errors import MlirFuseError


def lowered(function: Callable[..., Any], *shapes: tuple[int | str, ...]) -> None:
    mf.fuse(function, target="sm_90a").lower(*(mf.TensorSpec(shape, mf.float32) for shape in shapes))


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (lambda x, y: mf.concat([x, y]), ((2, 3), (2, 4)), r"concat: shapes \(2, 3\) and \(2, 4\) differ beside"),
        (lambda x, y: mf.concat([x, y], axis=1), ((2, 3), (2, 3, 1)), "differ beside dimension 1"),
        (lambda x, y: mf.concat([x, y], axis=2), ((2, 3), (2, 3)), "concat"),
        (lambda x, y: mf.concat([x, y], 1), ((2, 3), (3, 3)), "differ beside dimension 1"),
        (lambda x, y: mf.stack([x, y], 3), ((2, 3), (2, 3)), "out of range"),
        (lambda x, y: mf.concat([]), ((2,), (2,)), "concat of no arrays"),
        (lambda x, y: mf.concat(x), ((2,), (2,)), "concat takes a sequence of arrays"),
        (lambda x, y: mf.concat([x, 1.0]), ((2,), (2,)), "concat"),
        (lambda x, y: mf.concat([mf.sum(x), mf.sum(y)]), ((2,), (2,)), "concat of arrays without dimensions"),
        (lambda x, y: mf.stack([x, y]), ((2, 3), (2, 4)), r"stack: shapes \(2, 3\) and \(2, 4\) differ"),
        (lambda x, y: mf.stack([x, y], axis=4), ((2, 3), (2, 3)), "stack"),
        (lambda x, y: mf.concat([x, y], axis=1), (("n", 3), ("n", 4)), "needs the dynamic extent 'n' to be static"),
        (lambda x, y: mf.concatenate([x, y]), ((2,), (2,)), "mlirfuse has no 'concatenate'"),
        (lambda x, y: mf.hstack([x, y]), ((2,), (2,)), "mf.concat"),
    ],
)
def test_what_cannot_be_joined(
    function: Callable[..., Any], shapes: tuple[tuple[int | str, ...], ...], message: str
) -> None:
    with pytest.raises(MlirFuseError, match=message) as caught:
        lowered(function, *shapes)
    assert "test_joining.py" in str(caught.value)

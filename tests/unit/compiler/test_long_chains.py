"""No pass nests as deep as a chain of ops is long, whatever reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import mlirfuse as mf

STEPS = 300
"""Each is two ops: more than Python's frames."""


def _chain(x: mf.Tensor) -> mf.Tensor:
    for _ in range(STEPS):
        x = mf.abs(x) * 0.99
    return x


def _pairs(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
    return mf.sum(_chain(x)[:, None, :] * y[None], axis=2)


def _join(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
    return mf.concat([_chain(x)[1:], y], axis=0)[::2]


def _product(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
    return mf.matmul(_chain(x), y)


@pytest.mark.parametrize("function", [_pairs, _join, _product])
def test_they_are_compiled(function: Callable[..., mf.Tensor]) -> None:
    spec = mf.TensorSpec((16, 16), mf.float32)
    assert mf.fuse(function, target="sm_90a").lower(spec, spec).compile().binaries

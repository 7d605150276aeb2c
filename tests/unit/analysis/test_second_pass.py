"""Which functions need what they reduce over run-time extents along these again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.analysis.kernels import host_function
from mlirfuse.analysis.second_pass import needs_second_pass


def centred(x: Any) -> Any:
    return x - mf.mean(x, axis=0)


def by_way_of_a_vector(x: Any) -> Any:
    return x * mf.rsqrt(mf.sum(x * x, axis=0) + 1.0)


def scaled_sum(x: Any) -> Any:
    return mf.sum(x, axis=0) * 2.0


def rows(x: Any) -> Any:
    return x - mf.mean(x, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "rows_of", "expected"),
    [
        (centred, None, True),
        (by_way_of_a_vector, None, True),
        (centred, 64, False),
        (scaled_sum, None, False),
        (rows, None, False),
    ],
)
def test_second_passes(function: Callable[..., Any], rows_of: int | None, expected: bool) -> None:
    lowered = mf.fuse(function, target="sm_90a").lower(mf.TensorSpec((rows_of, 64), mf.float32))
    assert needs_second_pass(host_function(lowered.module.operation)) is expected

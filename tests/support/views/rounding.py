"""Programs whose results depend on which operations round; shared by the tests of PTX and those on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlirfuse as mf


def _scaled_deviations(x: Any) -> Any:
    v = x * mf.rsqrt(x * x + 1e-5)
    return mf.var(v, axis=-1), mf.std(v, axis=-1)


def _below_the_maximum(x: Any) -> Any:
    h = x * 0.7
    return h - mf.max(h, axis=-1, keepdims=True)


def _below_the_maximum_of_columns(x: Any) -> Any:
    h = x * 0.7 + 0.1
    return h - mf.max(h, axis=0, keepdims=True)


def _twice(y: Any) -> Any:
    return y, mf.floor(mf.abs(y))


def _written_and_used(x: Any) -> Any:
    h = x * 0.7
    return h, h - 1.0


ROUNDED: dict[str, Callable[..., Any]] = {
    "deviations": _scaled_deviations,
    "below the maximum": _below_the_maximum,
    "below the maximum of columns": _below_the_maximum_of_columns,
    "written and used": _written_and_used,
    "nothing": lambda x: x * x - x * x,
    "commuted": lambda x: x * mf.abs(x) - mf.abs(x) * x,
    "commuted constants": lambda x: x * 0.7 - 0.7 * x,
    "used twice": lambda x: _twice(x * 0.7 + 0.1),
    "summed and used": lambda x: (mf.sum(x * x, axis=-1), x * x - 1.0),
}
"""Functions of a matrix in which no product may be contracted."""

CONTRACTED: dict[str, Callable[..., Any]] = {
    "squares of rows": lambda x: mf.sum(x * x, axis=-1),
    "squares of columns": lambda x: mf.sum(x * x, axis=0),
    "all": lambda x: mf.sum(x * x),
    "variance": lambda x: mf.var(x, axis=-1),
    "reshaped": lambda x: mf.sum(mf.reshape(x * x, (-1, 4, x.shape[1] // 4)), axis=-1),
    "elements": lambda x: x * 0.7 + 0.1,
    "two products": lambda x: x * 0.7 - mf.abs(x) * 0.3,
    "norm": lambda x: x * mf.rsqrt(mf.mean(x * x, axis=-1, keepdims=True) + 1e-5),
}
"""Functions of a matrix with products that only a sum reads, or that are added to something in one result."""

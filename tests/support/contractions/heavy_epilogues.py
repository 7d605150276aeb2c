"""Products whose epilogues are long: for tests of the loops that they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.schedule import Schedule
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule


def swapped(schedule: Schedule) -> Schedule:
    """The schedule for the transposed tile."""
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, swapped=True))


SCHEDULES = {
    "tiles": warpgroup_schedule(128, 64),
    "one warpgroup": warpgroup_schedule(64, 64),
    "two tiles of rows": warpgroup_schedule(256, 64, persistent=True),
    "subtiles that overlap": warpgroup_schedule(128, 96),
    "persistent": warpgroup_schedule(128, 128, persistent=True),
    "consumer groups": warpgroup_schedule(128, 128, consumer_groups=2),
    "fragment by fragment": replace(warpgroup_schedule(128, 64, consumer_groups=2), order="depth"),
    "transposed": swapped(warpgroup_schedule(128, 64)),
    "transposed, 24 columns": swapped(warpgroup_schedule(128, 24)),
}


def gelu_bias(x: Any, w: Any, bias: Any) -> Any:
    """A bias along columns, and `erf`."""
    y = mf.astype(x @ w.mT, mf.float32) + mf.astype(bias, mf.float32)
    return mf.astype(y * (1 + mf.erf(y * 0.70710678)), x.dtype)


def gelu_gradient(x: Any, w: Any, h: Any) -> Any:
    """A tile of the same type that is read."""
    y = mf.astype(h, mf.float32)
    return mf.astype(mf.astype(x @ w.mT, mf.float32) * (mf.erf(y) + y * mf.exp(-y * y)), x.dtype)


def capped(x: Any, w: Any, bias: Any) -> Any:
    """A result of twice the size."""
    return mf.tanh(mf.astype(x @ w.mT, mf.float32) / 3 + mf.astype(bias, mf.float32)) * 3


def wide_read(x: Any, w: Any, h: Any) -> Any:
    """A tile of another type than the result, of many registers."""
    return mf.astype(mf.sin(mf.astype(x @ w.mT, mf.float32) + mf.astype(h, mf.float32) / 2), mf.float32)


FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (gelu_bias, gelu_gradient, capped, wide_read)}


def inputs_of(name: str, m: int, n: int, k: int) -> list[np.ndarray]:
    """Arguments in float16 of a function of `FUNCTIONS`."""
    rng = np.random.default_rng(m + n + k)
    third = (n,) if name in ("gelu_bias", "capped") else (m, n)
    return [rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k), third)]

"""Products whose epilogue reads tiles as large as their result, for the interpreter's and the GPU's tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule


def residual(x, w, r):
    return r + x @ w.mT


def gate(x, w, r):
    return (r.astype(mf.float32) * mf.matmul(x, w.mT, dtype=mf.float32)).astype(x.dtype)


def single(x, w, r):
    return mf.matmul(x, w.mT, dtype=mf.float32) + r


def two_results(x, w, r, s):
    y = x @ w.mT
    return y + r, y * s


def later_result(x, w, r):
    """The first result, which is not computed of what is read, goes through other stages than it comes through."""
    y = x @ w.mT
    return y, y + r


def masked(x, w, r, keep):
    """Tiles of other types than the result's."""
    y = mf.matmul(x, w.mT, dtype=mf.float32) * r
    return mf.where(keep, y, 1.0).astype(x.dtype)


def swapped(schedule: mf.Schedule) -> mf.Schedule:
    """The schedule with tiles of the transposed result."""
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, swapped=True))


def argument_stages(schedule: mf.Schedule) -> mf.Schedule:
    """The schedule with stages of their own for tiles of other types than the result's."""
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, argument_stages=True))


SCHEDULES = {
    "tiles": warpgroup_schedule(128, 128),
    "a subtile": warpgroup_schedule(64, 64),
    "overlapping subtiles": warpgroup_schedule(64, 96),
    "persistent": warpgroup_schedule(128, 128, persistent=True),
    "transposed": swapped(warpgroup_schedule(128, 96)),
    "transposed, persistent": swapped(warpgroup_schedule(64, 72, persistent=True)),
    "transposed, consumer groups": replace(swapped(warpgroup_schedule(128, 112, consumer_groups=2)), order="depth"),
    "clusters": warpgroup_schedule(64, 64, cluster=2, persistent=True),
    "two blocks": warpgroup_schedule(128, 64, blocks_per_sm=2),
    "consumer_groups": warpgroup_schedule(128, 128, consumer_groups=2),
    "consumer groups, fragment by fragment": replace(
        warpgroup_schedule(128, 96, consumer_groups=2, stages=4), order="depth"
    ),
}


def residual_inputs(fn: Callable[..., Any], m: int, n: int, k: int) -> list[np.ndarray]:
    """Small integers, of which all sums and products are exact."""
    rng = np.random.default_rng(5)
    shapes = [(m, k), (n, k), *[(m, n)] * (fn.__code__.co_argcount - 2)]
    arrays = [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]
    if fn is masked:
        return [*arrays[:2], arrays[2].astype(np.float32), arrays[3] > 0]
    return [a.astype(np.float32) if fn is single and number > 1 else a for number, a in enumerate(arrays)]


def residual_results(fn: Callable[..., Any], inputs: list[np.ndarray]) -> list[np.ndarray]:
    x, w, *others = (a.astype(np.float64) for a in inputs)
    y = x @ w.T
    if fn is two_results:
        return [y + others[0], y * others[1]]
    if fn is later_result:
        return [y, y + others[0]]
    if fn is masked:
        return [np.where(others[1] > 0, y * others[0], 1.0)]
    return [y * others[0] if fn is gate else y + others[0]]

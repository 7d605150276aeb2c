"""Functions at a stage of the compiler, and schedules to force on them; for tests that need no GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

import mlirfuse as mf
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.layout import WARP


def specs_of(arrays: Sequence[Any]) -> list[mf.TensorSpec]:
    """The specs of arrays, with all extents static."""
    return [mf.TensorSpec(a.shape, a.dtype.name) for a in arrays]


def module_at(
    stage: str,
    fn: Callable[..., Any],
    specs: Sequence[Any],
    schedule: mf.Schedule | Mapping[str, mf.Schedule] | None = None,
) -> ir.Module:
    """A function at the `linalg`, `tile` or `gpu` stage for sm_90a, verified after every pass."""
    module = mf.fuse(fn, target="sm_90a", schedule=schedule).lower(*specs).module
    if stage != "linalg":
        with module.context:
            run_pipeline(module, pipeline.named(f"fuse-{stage}-pipeline"))
    return module


def row_schedule(
    columns: int,
    *,
    vector: int = 1,
    lanes: int = WARP,
    warps: int = 1,
    cluster: int = 1,
    row_warps: int = 1,
    row_repeats: int = 1,
    chunk_repeats: int = 0,
    persistence: str = "registers",
    shifted: bool = False,
    shift_to: int = 0,
    realigned: bool = False,
) -> mf.Schedule:
    """A schedule of a kernel over (rows, columns) that reduces columns.

    Args:
        columns: the extent of a row.
        vector: contiguous elements of a thread.
        lanes: lanes of a warp along the row; the others are on other rows.
        warps: warps along the row.
        cluster: blocks along the row.
        row_warps: warps over rows.
        row_repeats: rows of one thread.
        chunk_repeats: vectors of a thread in one chunk of a row; 0 takes the row whole.
        persistence: where rows live between their reduction and their use.
        shifted: whether rows are shifted so that vectors are aligned.
        shift_to: to multiples of how many elements they are; 0 for a vector's.
        realigned: whether rows are realigned between memory and the layout.
    """
    step = vector * lanes * warps * cluster
    slack = shift_to - vector if shift_to > vector else vector - 1 if shifted or realigned else 0
    repeats = chunk_repeats or -(-(columns + slack) // step)
    layout = mf.BlockedLayout(
        (1, vector),
        (WARP // lanes, lanes),
        (row_warps, warps),
        (row_repeats, repeats),
        (1, cluster),
        shift_to=(0, shift_to or vector) if shifted else (),
        realigned=(0, 1) if realigned else (),
    )
    rows = WARP // lanes * row_warps * row_repeats
    return mf.Schedule((rows, min(columns, step * repeats)), layout, persistence)

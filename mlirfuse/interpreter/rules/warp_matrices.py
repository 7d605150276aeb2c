"""Warp-level matrix ops: `nvgpu.ldmatrix` and `fuse.mma`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import expand, over_lanes
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.machine import MATRIX_ROW_BYTES, MATRIX_ROWS

Step = Callable[[Frame], None]


def _require_whole_warps(site: Site, frame: Frame) -> None:
    if frame.mask is not None and not frame.mask.all():
        warps = frame.mask.reshape(-1, WARP)
        divergent = warps.any(axis=1) & ~warps.all(axis=1)
        if divergent.any():
            raise site.error("not all threads of the warp execute the op", frame, int(np.argmax(divergent)) * WARP)


@rule("nvgpu.ldmatrix")
def _ldmatrix(site: Site) -> Step:
    """Lane 8 i + r names row r of matrix i; lane l gets 4 bytes of row l / 4 of each, from byte 4 (l % 4) on."""
    source, *starts = site.operands
    out, count = site.results[0], site.integer("numTiles")
    assert count is not None
    transposed = "true" in str(site.op.attributes["transpose"])

    def step(frame: Frame) -> None:
        _require_whole_warps(site, frame)
        values, threads = frame.values, frame.block.threads
        width = MATRIX_ROW_BYTES // values[source].dtype.itemsize
        if transposed and width != MATRIX_ROWS:
            raise site.error("ldmatrix transposes elements of 16 bits only", frame)
        indices = [expand(over_lanes(start, threads), 2) for start in gather(values, starts)]
        indices[-1] = indices[-1] + np.arange(width)[None]
        naming = (frame.block.lanes % WARP < MATRIX_ROWS * count)[:, None]
        access = Access(site, frame, values[source], indices, naming)
        access.require_aligned(MATRIX_ROW_BYTES)
        rows = access.load().reshape(-1, WARP, width)[:, : MATRIX_ROWS * count].reshape(-1, count, MATRIX_ROWS, width)
        matrices = rows.swapaxes(2, 3) if transposed else rows
        # (warp, matrix, row, 4 bytes, element) to (warp, lane = row and 4 bytes, matrix, element)
        lanes = matrices.reshape(-1, count, MATRIX_ROWS, 4, width // 4).transpose(0, 2, 3, 1, 4)
        values[out] = lanes.reshape(threads, count, width // 4)

    return step


@rule("fuse.mma")
def _mma(site: Site) -> Step:
    """m16n8k16, m16n8k8 or m16n8k32 with fragments as in the PTX ISA; sums in the accumulators' type, as NumPy has."""
    (a, b, c), (out,) = site.operands, site.results

    def step(frame: Frame) -> None:
        _require_whole_warps(site, frame)
        values, threads = frame.values, frame.block.threads
        # Lane 4 g + t holds (k half, row half, element) of a at row g + 8 half, column e t + 4 e half + element, for e
        # elements in 4 bytes.
        e = values[b].shape[-1] // 2
        left = over_lanes(values[a], threads).reshape(-1, MATRIX_ROWS, 4, 2, 2, e).transpose(0, 4, 1, 3, 2, 5)
        right = over_lanes(values[b], threads).reshape(-1, MATRIX_ROWS, 4, 2, e).transpose(0, 3, 2, 4, 1)
        left, right = left.reshape(-1, 16, 8 * e), right.reshape(-1, 8 * e, MATRIX_ROWS)
        before = (
            over_lanes(values[c], threads)
            .reshape(-1, MATRIX_ROWS, 4, 2, 2)
            .transpose(0, 3, 1, 2, 4)
            .reshape(-1, 16, MATRIX_ROWS)
        )
        total = before + left.astype(before.dtype) @ right.astype(before.dtype)
        values[out] = total.reshape(-1, 2, MATRIX_ROWS, 4, 2).transpose(0, 2, 3, 1, 4).reshape(threads, 4)

    return step

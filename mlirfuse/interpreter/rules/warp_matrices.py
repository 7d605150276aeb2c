"""What a warp does together on matrices: `nvgpu.ldmatrix` and `fuse.mma`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.lanes import expand, spread
from mlirfuse.interpreter.machine import Frame
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.rules.gpu_ids import WARP
from mlirfuse.interpreter.site import Site, gather

Step = Callable[[Frame], None]

ROW = 8
"""Rows of one of `ldmatrix`'s matrices, and elements of a row."""


def _require_whole_warps(site: Site, frame: Frame) -> None:
    if frame.mask is not None and not frame.mask.all():
        warps = frame.mask.reshape(-1, WARP)
        torn = warps.any(axis=1) & ~warps.all(axis=1)
        if torn.any():
            raise site.error("not all threads of the warp reach it", frame, int(np.argmax(torn)) * WARP)


@rule("nvgpu.ldmatrix")
def _ldmatrix(site: Site) -> Step:
    """Lane 8 i + r names row r of matrix i; lane l gets elements 2 (l % 4) and the next of row l / 4 of each."""
    source, *starts = site.operands
    out, count = site.results[0], site.integer("numTiles")
    assert count is not None
    transposed = "true" in str(site.op.attributes["transpose"])

    def step(frame: Frame) -> None:
        _require_whole_warps(site, frame)
        values, threads = frame.values, frame.block.threads
        indices = [expand(spread(start, threads), 2) for start in gather(values, starts)]
        indices[-1] = indices[-1] + np.arange(ROW)[None]
        naming = (frame.block.lanes % WARP < ROW * count)[:, None]
        access = Access(site, frame, values[source], indices, naming)
        access.require_aligned(ROW * values[source].dtype.itemsize)
        rows = access.load().reshape(-1, WARP, ROW)[:, : ROW * count].reshape(-1, count, ROW, ROW)
        matrices = rows.swapaxes(2, 3) if transposed else rows
        # (warp, matrix, row, pair, 2) to (warp, lane = row and pair, matrix, 2)
        lanes = matrices.reshape(-1, count, ROW, ROW // 2, 2).transpose(0, 2, 3, 1, 4)
        values[out] = lanes.reshape(threads, count, 2)

    return step


@rule("fuse.mma")
def _mma(site: Site) -> Step:
    """m16n8k16 with fragments as in the PTX ISA; products are summed in float32, in NumPy's order."""
    (a, b, c), (out,) = site.operands, site.results

    def step(frame: Frame) -> None:
        _require_whole_warps(site, frame)
        values, threads = frame.values, frame.block.threads
        # Lane 4 g + t holds (k half, row half, pair) of a at row g + 8 half, column 2 t + 8 half + element.
        left = spread(values[a], threads).reshape(-1, ROW, 4, 2, 2, 2).transpose(0, 4, 1, 3, 2, 5).reshape(-1, 16, 16)
        right = spread(values[b], threads).reshape(-1, ROW, 4, 2, 2).transpose(0, 3, 2, 4, 1).reshape(-1, 16, ROW)
        before = spread(values[c], threads).reshape(-1, ROW, 4, 2, 2).transpose(0, 3, 1, 2, 4).reshape(-1, 16, ROW)
        total = before + left.astype(np.float32) @ right.astype(np.float32)
        values[out] = total.reshape(-1, 2, ROW, 4, 2).transpose(0, 2, 3, 1, 4).reshape(threads, 4)

    return step

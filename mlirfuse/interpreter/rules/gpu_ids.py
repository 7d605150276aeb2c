"""`gpu` ids and extents. Ids that depend on the thread have an element for each thread, all others one element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame, ThreadBlock
from mlirfuse.interpreter.state.types import keyword
from mlirfuse.schedule.layout import WARP

Id = Callable[[ThreadBlock, int], "int | np.ndarray"]


def _thread_id(block: ThreadBlock, axis: int) -> np.ndarray:
    x, y, _ = block.shape
    return (block.lanes % x, block.lanes // x % y, block.lanes // (x * y))[axis]


def _along_x(value: Callable[[ThreadBlock], int], other: int) -> Id:
    """An id or extent of a one-dimensional grid or cluster: `value` along x, and `other` along y and z."""
    return lambda block, axis: value(block) if axis == 0 else other


IDS: dict[str, Id] = {
    "thread_id": _thread_id,
    "block_dim": lambda block, axis: block.shape[axis],
    "block_id": _along_x(lambda block: block.index, 0),
    "grid_dim": _along_x(lambda block: block.grid, 1),
    "global_id": lambda block, axis: (block.index * block.shape[0] if axis == 0 else 0) + _thread_id(block, axis),
    "cluster_id": _along_x(lambda block: block.index // block.cluster.size, 0),
    "cluster_dim": _along_x(lambda block: block.grid // block.cluster.size, 1),
    "cluster_block_id": _along_x(lambda block: block.rank, 0),
    "cluster_dim_blocks": _along_x(lambda block: block.cluster.size, 1),
    "lane_id": lambda block, _axis: block.lanes % WARP,
    "subgroup_id": lambda block, _axis: block.lanes // WARP,
    "subgroup_size": lambda _block, _axis: WARP,
    "num_subgroups": lambda block, _axis: -(-block.threads // WARP),
}


def _register(name: str, value: Id) -> None:
    @rule(f"gpu.{name}")
    def build(site: Site) -> Callable[[Frame], None]:
        dimension = site.attribute("dimension")
        axis = 0 if dimension is None else "xyz".index(keyword(dimension))
        out = site.results[0]

        def step(frame: Frame) -> None:
            frame.values[out] = np.atleast_1d(np.asarray(value(frame.block, axis), np.int64))

        return step


for _name, _value in IDS.items():
    _register(_name, _value)

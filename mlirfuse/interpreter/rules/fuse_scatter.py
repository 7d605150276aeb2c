"""`fuse.scatter` and `fuse.scattered`: elements are put, or stored, at the positions that a map gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from mlirfuse.dialect.gathered_view import Gather, gather_of
from mlirfuse.dialect.scatter import sources_of
from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.affine import compile_map
from mlirfuse.interpreter.state.memory import MemRef, row_major


@pure("fuse.scatter")
def _scatter(site: Site) -> Callable[..., np.ndarray]:
    shape = tuple(ir.ShapedType(site.op.results[0].type).shape)
    places = [_places(positions, shape).ravel() for _, positions in sources_of(site.op)]

    def apply(*sources: np.ndarray) -> np.ndarray:
        result = np.empty(shape, sources[0].dtype)
        for source, place in zip(sources, places, strict=True):
            result.reshape(-1)[place[place >= 0]] = source.reshape(-1)[place >= 0]
        return result

    return apply


@pure("fuse.scattered")
def _scattered(site: Site) -> Callable[[MemRef], MemRef]:
    scatter = gather_of(site.op.attributes)
    places = _places(scatter, list(ir.ShapedType(site.op.operands[0].type).shape)).ravel()

    def apply(buffer: MemRef) -> MemRef:
        strides = row_major(scatter.shape)
        return MemRef(buffer.buffer, buffer.dtype, 0, scatter.shape, strides, f"view of {buffer.text}", places)

    return apply


def _places(scatter: Gather, shape: Sequence[int]) -> np.ndarray:
    """The number of each element's position in a C-contiguous result of that shape; -1 outside of the result."""
    place, inside = np.zeros((), np.int64), np.array(True)
    grid = list(np.indices(scatter.components, sparse=True))
    for index, extent in zip(compile_map(scatter.map)(grid), shape, strict=True):
        place = place * extent + index
        inside = inside & (np.asarray(index) >= 0) & (np.asarray(index) < extent)
    return np.broadcast_to(np.where(inside, place, -1), scatter.components).reshape(scatter.shape)

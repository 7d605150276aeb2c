"""`fuse.gathered_view`: the gathered elements, in an array of their own.

A kernel that was given a view takes the view's source once it is a tile program, so the array keeps it. A buffer's view
is copied where the op stands, as nobody writes a kernel's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.dialect.gathered_view import gather_of
from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.affine import compile_map
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import from_array


class GatheredArray(np.ndarray):
    """A gathered view's elements; `source` is the array that they come from, None for an array made of a view's."""

    source: np.ndarray | None

    def __array_finalize__(self, other: object) -> None:
        self.source = None


def source_of(array: Any) -> Any:
    """What a tile program takes for an argument: the source of a gathered view, and any other array itself."""
    return array if getattr(array, "source", None) is None else array.source


@rule("fuse.gathered_view")
def _gathered_view(site: Site) -> Callable[[Frame], None]:
    gather = gather_of(site.op.attributes)
    indices_of = compile_map(gather.map)
    is_buffer = isinstance(site.op.results[0].type, ir.MemRefType)
    extents = gather.inside or list(ir.ShapedType(site.op.operands[0].type).shape)
    (source,), (out,) = site.operands, site.results

    def step(frame: Frame) -> None:
        grid = np.indices(gather.components, sparse=True)
        indices = [np.asarray(index) for index in indices_of(list(grid))]
        inside = np.array(True)
        for index, extent in zip(indices, extents, strict=True):
            inside = inside & (index >= 0) & (index < extent)
        shape = np.broadcast_shapes(gather.components, inside.shape)
        inside = np.broadcast_to(inside, shape)
        value = frame.values[source]
        whole = [np.where(inside, np.broadcast_to(index, shape), 0) for index in indices]
        if gather.inside:
            data = np.array(inside)
        elif is_buffer:
            flat = [index.reshape(1, -1) for index in whole]
            data = Access(site, frame, value, flat, inside.reshape(1, -1)).load()
        else:
            data = np.where(inside, value[tuple(whole)], np.zeros((), value.dtype))
        data = data.reshape(gather.shape)
        if is_buffer:
            frame.values[out] = from_array(f"view of {value.text}", data, None, 16, readonly=True, checks=False)
            return
        view = data.view(GatheredArray)
        view.source = value
        frame.values[out] = view

    return step

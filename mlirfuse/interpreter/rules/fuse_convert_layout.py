"""`fuse.convert_layout`: moves tiles between threads; their values do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.types import vector_shape


@pure("fuse.convert_layout")
def _convert_layout(site: Site) -> Callable[..., Any]:
    shape = vector_shape(site.op.results[0].type)
    if len(site.results) == 1:
        return lambda tile: tile.reshape(tile.shape[0], *shape)
    return lambda *tiles: tuple(tile.reshape(tile.shape[0], *shape) for tile in tiles)

"""`fuse.operand_tile`: elements of an operand's tile, in the accumulators' order."""

from __future__ import annotations

import numpy as np

from mlirfuse.dialect.operand_tile import first_of
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.rules.vector_shape import Function
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.types import vector_shape


@pure("fuse.operand_tile")
def _operand_tile(site: Site) -> Function:
    shape, transposed = vector_shape(site.op.results[0].type), is_transposed(site.op)
    first = first_of(site.op)

    def apply(source: np.ndarray) -> np.ndarray:
        tile = source.swapaxes(-1, -2) if transposed else source
        return tile[..., first : first + shape[-1]].reshape(source.shape[0], *shape)

    return apply

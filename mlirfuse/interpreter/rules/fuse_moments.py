"""`fuse.moments` on tensors and on tile vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.site import Site


@pure("fuse.moments")
def _moments(site: Site) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Reduces in two passes in the element type, which the merge of partial pairs approximates."""
    lead = 0 if isinstance(site.op.operands[0].type, ir.RankedTensorType) else 1
    axes = tuple(lead + d for d in site.ints("dims"))

    def apply(source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = int(np.prod([source.shape[axis] for axis in axes]))
        total = np.add.reduce(source, axis=axes, keepdims=True)
        centred = source - total / np.asarray(count, source.dtype)
        return np.squeeze(total, axes), np.add.reduce(centred * centred, axis=axes)

    return apply

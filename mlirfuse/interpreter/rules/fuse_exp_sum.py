"""`fuse.exp_sum` on tensors and on tile vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.site import Site


@pure("fuse.exp_sum")
def _exp_sum(site: Site) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Reduces in two passes in the element type, which the merge of partial pairs approximates."""
    lead = 0 if isinstance(site.op.operands[0].type, ir.RankedTensorType) else 1
    axes = tuple(lead + d for d in site.ints("dims"))

    def apply(source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        maximum = np.maximum.reduce(source, axis=axes, keepdims=True)
        return np.squeeze(maximum, axes), np.add.reduce(np.exp(source - maximum), axis=axes)

    return apply

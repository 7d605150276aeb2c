"""`fuse.thread_reduce` on tile vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.rules.vector_reduce import combiner, reduce_axes
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.types import element_dtype, keyword


@pure("fuse.thread_reduce")
def _thread_reduce(site: Site) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Splits each dimension into pieces, threads and neighbours, and combines over pieces and neighbours."""
    function = combiner(keyword(site.op.attributes["kind"]), element_dtype(site.op.operands[0].type))
    neighbours = dict(zip(site.ints("dims"), site.ints("neighbours"), strict=True))
    whole, kept = (ir.VectorType(value.type).shape for value in (site.op.operands[0], site.op.results[0]))
    shape, axes = list[int](), list[int]()
    for d, (extent, threads) in enumerate(zip(whole, kept, strict=True)):
        if d in neighbours:
            axes += [1 + len(shape), 3 + len(shape)]
            shape += [extent // (threads * neighbours[d]), threads, neighbours[d]]
        else:
            shape.append(threads)

    def apply(source: np.ndarray, initial: np.ndarray) -> np.ndarray:
        return function(reduce_axes(function, source.reshape(source.shape[0], *shape), tuple(axes)), initial)

    return apply

"""`memref.atomic_rmw`: atomic updates by threads and blocks, in unspecified order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rules.arith_float import BINARY as FLOAT
from mlirfuse.interpreter.rules.arith_int import BINARY as INT
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.machine import Frame

_SIGNED = {"maxs": "maxsi", "mins": "minsi", "maxu": "maxui", "minu": "minui"}


def _assign(_old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return value


@suspending("memref.atomic_rmw")
def _atomic_rmw(site: Site) -> Callable[[Frame], Coroutine]:
    """A relaxed atomic update, as on the device, which only orders updates of the same element."""
    value, target, indices, out = site.operands[0], site.operands[1], site.operands[2:], site.results[0]
    kind = AtomicRMWKind(ir.IntegerAttr(site.op.attributes["kind"]).value).name
    combine = _assign if kind == "assign" else {**INT, **FLOAT}[_SIGNED.get(kind, kind)]

    def step(frame: Frame) -> Coroutine:
        yield None  # other blocks may come first
        access = Access(site, frame, frame.values[target], gather(frame.values, indices))
        frame.values[out] = access.update(combine, frame.values[value])

    return step

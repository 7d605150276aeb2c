"""`fuse.accumulate`: atomic additions by threads and blocks, in unspecified order."""

from __future__ import annotations

from collections.abc import Callable

from mlirfuse.dialect.accumulate import ALIGNMENT
from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import element_indices
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.types import vector_shape


@suspending("fuse.accumulate")
def _accumulate(site: Site) -> Callable[[Frame], Coroutine]:
    """Relaxed atomics: the op does not order other accesses."""
    value, sums, *starts = site.operands
    alignment = site.integer(ALIGNMENT)
    elements = element_indices(vector_shape(site.op.operands[0].type))

    def step(frame: Frame) -> Coroutine:
        yield None  # other blocks may come first
        access = Access(site, frame, frame.values[sums], elements(gather(frame.values, starts)))
        access.require_aligned(alignment)
        access.add(frame.values[value])

    return step

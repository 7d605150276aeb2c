"""`nvvm.griddepcontrol`."""

from __future__ import annotations

from collections.abc import Callable

from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.types import keyword

WAIT = "nvvm.griddepcontrol"


@rule(WAIT)
def _griddepcontrol(site: Site) -> Callable[[Frame], None]:
    """Checks that global memory is not accessed before the wait; the predecessor has always ended here.

    A trigger has no effect, as dependent kernels wait for the end of this one.
    """
    if keyword(site.op.attributes["kind"]) == "launch_dependents":
        return lambda frame: None

    def step(frame: Frame) -> None:
        require_converged(site, frame)
        frame.block.has_waited = True

    return step

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
    """The predecessor has always ended here; that nothing touches global memory before is checked.

    Kernels that are let start early see nothing before this one has ended, as they wait for it.
    """
    if keyword(site.op.attributes["kind"]) == "launch_dependents":
        return lambda frame: None

    def step(frame: Frame) -> None:
        require_converged(site, frame)
        frame.block.has_waited = True

    return step

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
    """A wait allows accesses to global memory, which are errors before; the predecessor has always ended by then.

    A trigger has no effect: the interpreter runs one kernel after the other.
    """
    if keyword(site.op.attributes["kind"]) == "launch_dependents":
        return lambda frame: None

    def step(frame: Frame) -> None:
        require_converged(site, frame)
        frame.block.has_waited = True

    return step

"""`fuse.prefetch_rows`."""

from __future__ import annotations

from collections.abc import Callable

from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame


@rule("fuse.prefetch_rows")
def _prefetch_rows(site: Site) -> Callable[[Frame], None]:
    """Has no visible effect; checks that the whole block executes the op."""
    return lambda frame: require_converged(site, frame)

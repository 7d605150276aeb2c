"""`fuse.prefetch_rows` and `fuse.prefetch_tile`, which have no visible effect."""

from __future__ import annotations

from collections.abc import Callable

from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.rules.fuse_mbarriers import agreed, one_thread
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame


@rule("fuse.prefetch_rows")
def _prefetch_rows(site: Site) -> Callable[[Frame], None]:
    """Checks that the whole block executes the op."""
    return lambda frame: require_converged(site, frame)


@rule("fuse.prefetch_tile")
def _prefetch_tile(site: Site) -> Callable[[Frame], None]:
    """Checks that one thread executes the op, at indices that are known."""
    _, *indices = site.operands

    def step(frame: Frame) -> None:
        one_thread(site, frame)
        for index in indices:
            agreed(site, frame, index)

    return step

"""GPU architectures: their limits and instructions as data, and the target of a module, which passes read from it.

Code asks a `Target` for a capability (`has_tma`), never for its name. Nothing here decides on a schedule.
"""

from __future__ import annotations

from difflib import get_close_matches

from mlirfuse.errors import TargetError
from mlirfuse.target.architecture import Target
from mlirfuse.target.table import DEFAULT, KIB, TARGETS

__all__ = ["DEFAULT", "KIB", "LINE", "SECTOR", "TARGETS", "Target", "target_of"]

SECTOR, LINE = 32, 128
"""Bytes of a memory transaction and of a cache line, equal on all known architectures (CUDA Programming Guide,
"Device Memory Accesses")."""


def target_of(target: str | Target | None, sms: int = 0) -> Target:
    """The target of that name (`DEFAULT` for None), or the one that is given.

    Args:
        target: the name, or a known target, whose number of SMs may have been changed by `with_sms`.
        sms: the number of SMs of the result; 0 keeps the target's.

    Raises:
        TargetError: the target is unknown, or would have less than one SM.
    """
    name = DEFAULT if target is None else target.chip if isinstance(target, Target) else target
    known = TARGETS.get(name) if isinstance(name, str) else None
    if known is None:
        close = get_close_matches(str(name), TARGETS, n=1, cutoff=0.85)
        meant = f"did you mean {close[0]}? " if close else ""
        raise TargetError(f"unknown target {name!r}", hint=f"{meant}known targets: {', '.join(TARGETS)}")
    if isinstance(target, Target) and target.with_sms(known.sms) != known:
        raise TargetError(f"{target} is not {known.chip} as mlirfuse knows it", hint="only with_sms changes a target")
    found = target if isinstance(target, Target) else known
    return found.with_sms(sms) if sms else found

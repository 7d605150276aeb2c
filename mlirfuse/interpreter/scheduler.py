"""Runs blocks as coroutines, in a chosen order, and detects deadlocks.

A block is a generator. The generator yields None where other blocks may be scheduled (a barrier, an atomic), and a
`Wait` where the block has to wait for another block. Blocks of one cluster are dispatched together, as on the device.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.progress import BlockProgress

ORDERS = ("launch", "reversed", "random")


@dataclass(frozen=True)
class Wait:
    """The condition that a block waits for.

    Attributes:
        what: the awaited event, for the deadlock report: `fuse.cluster_barrier at f.py:3 (1 of 2 blocks arrived)`.
        ready: whether the block can continue.
    """

    what: Callable[[], str]
    ready: Callable[[], bool]


Coroutine = Generator[Wait | None, None, None]
Group = Callable[[], Sequence[tuple[str, Coroutine]]]


@dataclass(frozen=True)
class Schedule:
    """The order in which blocks run.

    Attributes:
        order: `launch` (by block id), `reversed`, or `random` (dispatched in random order, interleaved at every yield).
        seed: seed of the random order.
        resident: number of blocks that may be on the device at once; None for all.

    Raises `InterpreterError` for an unknown order or a residency below 1.
    """

    order: str = "launch"
    seed: int = 0
    resident: int | None = None

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InterpreterError(f"unknown block order {self.order!r}", hint=f"orders: {', '.join(ORDERS)}")
        if self.resident is not None and self.resident < 1:
            raise InterpreterError(f"resident={self.resident} allows no block to run", hint="pass 1 or more")


@dataclass
class _Resident:
    name: str
    coroutine: Coroutine
    group: int
    wait: Wait | None = None


def run_blocks(groups: Sequence[Group], group_size: int, schedule: Schedule, progress: BlockProgress) -> None:
    """Runs all groups, which are clusters of `group_size` blocks, to their end.

    A group is a function that starts the group's blocks and returns their names and coroutines; the function is called
    when the group is dispatched. Raises `InterpreterError` for a deadlock, and for a cluster of more blocks than may be
    resident.
    """
    if schedule.resident is not None and schedule.resident < group_size:
        raise InterpreterError(
            f"a cluster of {group_size} blocks cannot be dispatched with {schedule.resident} resident"
        )
    rng = random.Random(schedule.seed) if schedule.order == "random" else None
    pending = list(range(len(groups)))
    if schedule.order == "launch":
        pending.reverse()
    elif rng is not None:
        rng.shuffle(pending)
    limit = len(groups) if schedule.resident is None else schedule.resident // group_size
    resident: list[_Resident] = []
    live: dict[int, int] = {}
    while pending or resident:
        # Without interleaving, a group is started when no resident block can continue, which needs less memory.
        runnable = [r for r in resident if r.wait is None or r.wait.ready()]
        while pending and len(live) < limit and (rng is not None or not runnable):
            group = pending.pop()
            started = [_Resident(name, coroutine, group) for name, coroutine in groups[group]()]
            live[group] = len(started)
            resident += started
            runnable += started
        if not runnable:
            raise InterpreterError(_deadlock(resident, len(pending) * group_size))
        chosen = rng.choice(runnable) if rng is not None else runnable[0]
        if _advance(chosen, interleave=rng is not None):
            resident.remove(chosen)
            live[chosen.group] -= 1
            if not live[chosen.group]:
                del live[chosen.group]
            progress.advance()


def _advance(block: _Resident, *, interleave: bool) -> bool:
    """Runs a block to its next yield; returns whether the block has ended."""
    for wait in block.coroutine:
        block.wait = wait
        if interleave or (wait is not None and not wait.ready()):
            return False
    return True


def _deadlock(resident: Sequence[_Resident], pending: int) -> str:
    lines = [f"  {r.name} waits for {r.wait.what()}" for r in resident if r.wait is not None]
    more = f"; {pending} more blocks cannot be dispatched before one ends" if pending else ""
    return "\n".join([f"deadlock: none of the {len(resident)} resident blocks can continue{more}", *lines])

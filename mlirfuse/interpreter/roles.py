"""Programs that run concurrently in one block, such as the branches that different warps take."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mlirfuse.interpreter.program import Program
from mlirfuse.interpreter.scheduler import Coroutine, Wait
from mlirfuse.interpreter.state.machine import Frame


def run_concurrently(roles: Sequence[tuple[Program, Frame]], seed: int) -> Coroutine:
    """Runs programs, each in its own frame, until all have ended.

    The seed selects the first role that can continue, the last one, or a random one. Over the blocks of a grid, both
    producers and consumers therefore run as far ahead as synchronisation allows.
    """
    running = [program.run(frame) for program, frame in roles]
    waits: dict[int, Wait] = {}
    rng = random.Random(seed)
    while running:
        ready = [c for c in running if id(c) not in waits or waits[id(c)].ready()]
        if not ready:
            stuck = [waits[id(c)] for c in running]
            yield Wait(
                lambda stuck=stuck: " and ".join(w.what() for w in stuck),  # type: ignore[misc]
                lambda stuck=stuck: any(w.ready() for w in stuck),  # type: ignore[misc]
            )
            continue
        chosen = (ready[0], ready[-1], rng.choice(ready))[seed % 3]
        waits.pop(id(chosen), None)
        try:
            wait = next(chosen)
        except StopIteration:
            running.remove(chosen)
            continue
        if wait is not None:
            waits[id(chosen)] = wait
        yield None

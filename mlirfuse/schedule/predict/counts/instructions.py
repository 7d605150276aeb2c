"""Instructions of a kernel's threads, and what threads, warps and blocks exchange in reductions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem, RowReduction

ACCESS_INSTRUCTIONS, STRIDE_INSTRUCTIONS, NEXT_STRIDE_INSTRUCTIONS = 5, 3, 12
"""Instructions of an access to memory: itself, its address, and its predicate or conversion; what an address takes more
where a stride is known at run time only; and for each further such stride: a product and a bound, of 64 bits."""

THREAD_INSTRUCTIONS = 30
"""Instructions of a thread beside its elements: its coordinates."""

STEP_INSTRUCTIONS = 50
"""Instructions of a thread for a step of a persistent loop: the next tile's coordinates, copies, and waits for them."""

SPECIAL_INSTRUCTIONS = 4
"""Instructions that a thread waits for a special function as long as for."""

SHUFFLE_INSTRUCTIONS, SHUFFLE_WAIT = 2, 12
"""Instructions of a step of a reduction over lanes, beside merging two partial results; and those that a thread waits
for it as long as for."""

MERGE_INSTRUCTIONS, JOINT_MERGE_INSTRUCTIONS = 2, 10
"""Instructions that merge two partial results: of a plain reduction, and of a joint one, such as a maximum with the sum
of exponentials below it, or a mean with a variance."""

INDEPENDENT = 0.5
"""Share of the instructions for a thread's elements that wait for others: elements are independent of one another."""


def add_elements(work: Work, problem: Problem, covered: int, accesses: float) -> None:
    """Adds the instructions for so many elements, padding included, each with so many accesses to memory."""
    at_run_time = max((array.strides.count(None) for array in problem.arrays), default=0)
    each = ACCESS_INSTRUCTIONS
    if at_run_time:
        each += STRIDE_INSTRUCTIONS + NEXT_STRIDE_INSTRUCTIONS * (at_run_time - 1)
    work.instructions += covered * (problem.instructions + each * accesses)
    work.instructions += work.blocks * work.threads * THREAD_INSTRUCTIONS
    work.special += covered * problem.special
    work.double += covered * problem.double


def add_shared_elements(
    work: Work, problem: Problem, layout: BlockedLayout, looped: Collection[int] = (), steps: float = 1
) -> None:
    """Adds the instructions for values that vary along some dimensions only, which each thread computes of its own:
    those that vary along a dimension that blocks loop over in each of so many steps.
    """
    threads = work.blocks * work.threads
    for shared in problem.shared_instructions:
        held = threads * layout.held(shared.dims) * (1 if shared.dims.isdisjoint(looped) else steps)
        work.instructions += held * shared.instructions
        work.special += held * shared.special
        work.double += held * shared.double


def add_repeated(work: Work, problem: Problem, covered: int, *, early: bool = False) -> None:
    """Adds the instructions of passes that compute again what earlier ones did, for so many elements; `early` says that
    results are written by the first pass that can compute them.
    """
    plain, special, double = problem.repeated_early if early else problem.repeated
    work.instructions += covered * plain
    work.special += covered * special
    work.double += covered * double


def add_exchanges(work: Work, exchanged: Exchange, times: int) -> None:
    """Adds what blocks exchange, of which each does so once, so many times."""
    work.shared += exchanged.shared * times
    work.dsmem += exchanged.dsmem * times
    work.instructions += exchanged.instructions * times
    work.special += exchanged.special * times


def own_waits(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of one thread for its elements of a tile that wait for one another."""
    each = problem.instructions + SPECIAL_INSTRUCTIONS * problem.special
    return INDEPENDENT * layout.elements_per_thread * each


@dataclass
class Exchange:
    """Of all threads of one block, once. Shared by those who ask, and not to be changed.

    Attributes:
        shared: bytes through shared memory.
        dsmem: bytes from other blocks' shared memory.
        instructions: of all threads.
        special: special functions of all threads.
        waits: instructions of one thread, one after the other.
        meets: whether warps meet.
        joins: whether blocks do.
    """

    shared: float = 0.0
    dsmem: float = 0.0
    instructions: float = 0.0
    special: float = 0.0
    waits: float = 0.0
    meets: bool = False
    joins: bool = False


def shared_out(senders: int, lanes: int) -> float:
    """Partial results that a lane merges where several lanes share in those of some senders, and merge theirs then."""
    shares = min(senders, lanes)
    return senders / shares + log2(shares)


def exchanges(
    parts: tuple[RowReduction, ...], layout: BlockedLayout, problem: Problem, *, apart: bool = False
) -> Exchange:
    """Those of `exchanges_of` for a problem's reductions."""
    return exchanges_of(parts, layout, problem.special > 0, apart)


@lru_cache(maxsize=1024)  # many schedules of a kernel differ in other things than the layout
def exchanges_of(parts: tuple[RowReduction, ...], layout: BlockedLayout, special: bool, apart: bool) -> Exchange:
    """What a block's threads exchange of some reductions.

    Lanes shuffle. Then every warp writes a number for each result, and every thread reads and merges what all warps
    along the reduced dimensions wrote of its results; so do blocks.

    Args:
        parts: the reductions.
        layout: of a tile.
        special: whether joint reductions compute special functions.
        apart: whether joint reductions, such as a mean and a variance, are done one after the other.
    """
    out = Exchange()
    for part in parts:
        kept = layout.held(part.kept)
        lanes = warps = blocks = 1
        for d in part.dims:
            lanes *= layout.lanes[d]
            warps *= layout.warps[d]
            blocks *= layout.blocks[d]
        joint = part.bytes > REGISTER_BYTES and not apart
        rounds = log2(lanes)
        # Lanes along what is reduced have the same results, and share in merging those of warps and blocks.
        of_warps, of_blocks = (shared_out(n, lanes) if n > 1 else 0.0 for n in (warps, blocks))
        merges = kept * (rounds + of_warps + of_blocks)
        each = JOINT_MERGE_INSTRUCTIONS if joint else MERGE_INSTRUCTIONS
        functions = 2.0 if joint and special else 0.0
        out.instructions += layout.threads * (merges * each + kept * rounds * SHUFFLE_INSTRUCTIONS)
        out.special += layout.threads * merges * functions
        out.waits += merges * (each + functions * SPECIAL_INSTRUCTIONS) + rounds * SHUFFLE_WAIT
        results = layout.threads * kept * part.bytes
        if warps > 1:
            out.shared += results * (of_warps + 1.0 / lanes)
            out.meets = True
        if blocks > 1:
            out.dsmem += results * blocks / lanes
            out.joins = True
    return out

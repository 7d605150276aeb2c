"""Choosing again where the assembler contradicts the estimates: pure functions of (attempts, problem, target).

Registers are estimated before there is code. Where a thread takes so many more that fewer blocks are resident than was
assumed, the choice is made again with what is known. The report of a schedule that spilled corrects the estimates of
others, and the same choice is made again. Where that gives nothing new, threads get more registers, and then less work.
Kernels that still spill get the schedules of `low_registers.py`, so that a kernel spills only where every family does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from mlirfuse.errors import ScheduleError
from mlirfuse.machine import MachineModel
from mlirfuse.schedule.choice.choice import (
    CLEARLY,
    RESOLUTION,
    choose_schedule,
    faster,
    fastest_spilling,
    fastest_thin,
    fastest_with_known_registers,
    kind_of,
)
from mlirfuse.schedule.choice.contraction_choice import fastest_first
from mlirfuse.schedule.choice.low_registers import low_register_schedules
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.several import joined_schedule
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import uncorrected_registers
from mlirfuse.schedule.model.residency import registers_left
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

MOST_AGAIN = 3
"""Schedules that are tried after the first one; as many again may turn out not to compile, or to spill little."""

MOST_LEAN = 3
"""Schedules of the fewest registers that are tried after these."""

NEARLY = 1.05
"""Wanted to available registers, up to which a schedule that spilled is not one of those `MOST_AGAIN`: another one,
with slightly more registers, may fit."""

STRONGER, MOST_STRONGER = 1.1, 16
"""By how much a correction grows that leaves the choice as it was, and how often it may."""

LARGER = 4
"""Times as many elements of a thread as those of a schedule that spilled, at most, that another one may have."""

Legal = Callable[[Schedule], bool]
"""Whether a schedule is legal for the kernel."""


@dataclass(frozen=True)
class Attempt:
    """A schedule that a kernel was compiled with, and the assembler's report.

    Attributes:
        schedule: the schedule.
        registers: registers of a thread.
        spilled: bytes that a thread stores, or loads, for want of registers, whichever are more.
        refused: why no code could be made of the schedule, where that is so; the numbers mean nothing then.
        second_stage: whether that is of the second kernel, which adds up partials.
    """

    schedule: Schedule
    registers: int
    spilled: int
    refused: str = ""
    second_stage: bool = False

    @property
    def failed(self) -> bool:
        """Whether the kernel spilled, or no code could be made."""
        return bool(self.refused) or self.spilled > 0

    @property
    def lacking(self) -> float:
        """Registers that a thread wanted to those that it had."""
        return 1.0 if self.refused else 1 + self.spilled / REGISTER_BYTES / self.registers


def least_spilling(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt that spilled the fewest bytes, the first of equals; none that was refused, unless all were."""
    return min(attempts, key=lambda attempt: (bool(attempt.refused), attempt.spilled))


def choose_schedule_again(
    attempts: Sequence[Attempt],
    problem: Problem,
    target: Target,
    grid_reduction: str,
    legal: Legal,
    machine: MachineModel | None = None,
) -> Schedule:
    """The next schedule to try for a kernel without contractions; of those that spill the fastest where all were tried.

    Where some did not spill, the fastest with the registers of their code: one of these, or another one, of which
    `MOST_AGAIN` are tried.
    """
    known = {attempt.schedule: attempt.registers for attempt in attempts if not attempt.failed}
    if known:
        enough = len(attempts) > min(len(known), MOST_AGAIN)
        return fastest_with_known_registers(problem, target, known, None if enough else legal, machine)
    again = _rows_again(attempts, problem, target, grid_reduction)
    lean = _lean_rows(attempts, problem, target, grid_reduction, legal)
    if (schedule := _next(attempts, again, lean, legal)) is not None:
        return schedule
    lacking = {attempt.schedule: attempt.lacking for attempt in attempts if not attempt.refused}
    return fastest_spilling(problem, target, lacking, machine) if lacking else attempts[0].schedule


def choose_contraction_again(
    attempts: Sequence[Attempt], problem: ContractionProblem, target: Target, machine: MachineModel, legal: Legal
) -> Schedule:
    """The next schedule to try for a contraction; the least spilling one where all were tried."""
    ranked = dict(fastest_first(problem, target, machine))
    again, lean = _contractions_again(attempts, problem, target, ranked), _lean_contractions(attempts, list(ranked))
    return _next(attempts, again, lean, legal) or least_spilling(attempts).schedule


def _next(
    attempts: Sequence[Attempt], alternatives: Iterator[Schedule], lean: Iterator[Schedule], legal: Legal
) -> Schedule | None:
    """The first alternative that is new and legal, or a `lean` one after enough of these, or None."""
    tried = {attempt.schedule for attempt in attempts}
    most_held = LARGER * max(attempt.schedule.layout.elements_per_thread for attempt in attempts)
    spilled = sum(attempt.lacking > NEARLY for attempt in attempts)
    most = MOST_AGAIN + MOST_LEAN
    if spilled <= most and len(attempts) <= 2 * most:
        enough = spilled > MOST_AGAIN or len(attempts) > 2 * MOST_AGAIN
        for schedule in lean if enough else chain(alternatives, lean):
            if schedule not in tried and schedule.layout.elements_per_thread <= most_held and legal(schedule):
                return schedule
    return None


def _rows_again(
    attempts: Sequence[Attempt], problem: Problem, target: Target, grid_reduction: str
) -> Iterator[Schedule]:
    """The choices with corrected estimates, and relaxations of the last attempt.

    Estimates of schedules of another kind are not corrected.
    """
    factor = _correction(attempts, problem)
    kinds = {kind_of(attempt.schedule) for attempt in attempts}
    with suppress(ScheduleError):  # of persistent loops that no registers are left for
        if grid_reduction == "auto":
            chosen = choose_schedule(replace(problem, register_scale=factor), target)
            yield from filter(
                None,
                (
                    faster(problem, target, chosen, lambda s: _is_roomier(s, attempts, target), by=CLEARLY),
                    faster(problem, target, chosen, lambda s: kind_of(s) not in kinds),
                ),
            )
        for _ in range(MOST_STRONGER):
            yield choose_schedule(replace(problem, register_scale=factor), target, grid_reduction)
            factor *= STRONGER
    last = attempts[-1]
    yield from roomier(last, target)
    yield from thinner(last, problem)


def _is_roomier(schedule: Schedule, attempts: Sequence[Attempt], target: Target) -> bool:
    """Whether threads of a schedule have more registers to every element than those of all that spilled, by about what
    was lacking.
    """
    had = (_room(attempt.schedule, target) * attempt.lacking**0.5 for attempt in attempts if not attempt.refused)
    return _room(schedule, target) > max(had, default=0.0)


def _room(schedule: Schedule, target: Target) -> float:
    """Registers that a thread may have to every element that it holds."""
    left = registers_left(schedule.layout.threads, max(1, schedule.blocks_per_sm), target)
    return left / schedule.layout.elements_per_thread


def _correction(attempts: Sequence[Attempt], problem: Problem) -> float:
    """Registers that threads take to those that are estimated: the most of what attempts of one kind show.

    More bytes are spilled than registers are lacking, as a value may be stored several times. So half of them count
    where one schedule of a kind was tried, and all of them where that was not enough.
    """
    found, counts = 1.0, Counter(kind_of(attempt.schedule) for attempt in attempts if not attempt.refused)
    for attempt in attempts:
        if attempt.refused:
            continue
        share = min(1.0, counts[kind_of(attempt.schedule)] / 2)
        wanted = attempt.registers + share * attempt.spilled / REGISTER_BYTES
        found = max(found, wanted / (uncorrected_registers(attempt.schedule, problem) or attempt.registers))
    return found


def _lean_rows(
    attempts: Sequence[Attempt], problem: Problem, target: Target, grid_reduction: str, legal: Legal
) -> Iterator[Schedule]:
    """The schedules that keep the least in registers: of those alike that spilled, at most half as many elements.

    The fastest schedule with as few comes first: rows may have many threads. An attempt shows nothing of another
    family, nor of the registers of a block that has an SM for itself. The last that may be tried is the one with the
    fewest elements of all.
    """
    whole = [each.schedule for each in attempts if each.schedule.persistent_loop is None and not each.refused]
    is_last = sum(not attempt.refused for attempt in attempts) >= MOST_AGAIN + MOST_LEAN
    if whole and grid_reduction == "auto" and not is_last:
        least = min(schedule.layout.elements_per_thread for schedule in whole)
        if (fast := fastest_thin(problem, target, least // 2)) is not None:
            yield fast
    lean = [schedule for schedule in low_register_schedules(problem, target, grid_reduction) if legal(schedule)]
    if is_last:
        lean.sort(key=lambda schedule: schedule.layout.elements_per_thread)
    alike = [each.schedule for each in attempts if each.schedule.blocks_per_sm == 1 and not each.refused]
    for schedule in lean:
        held = [each.layout.elements_per_thread for each in alike if each.persistence == schedule.persistence]
        if not held or schedule.layout.elements_per_thread <= min(held) // 2:
            yield schedule
    yield from lean


def roomier(attempt: Attempt, target: Target) -> Iterator[Schedule]:
    """The schedule with fewer resident blocks, whose threads may have the registers that were lacking; then with one.

    No schedule where a thread had all registers that it may have.
    """
    schedule = attempt.schedule
    contraction = schedule.contraction
    if (contraction is not None and contraction.family.is_asynchronous) or (
        schedule.persistent_loop and schedule.persistent_loop.blocks
    ):
        return  # warpgroups share registers out by themselves; parts of a persistent loop are counted by its blocks
    threads, wanted = schedule.layout.threads, attempt.registers * attempt.lacking
    fewer = range(schedule.blocks_per_sm - 1, 0, -1)
    enough = [blocks for blocks in fewer if registers_left(threads, blocks, target) >= wanted]
    for blocks in dict.fromkeys([*enough[:1], 1]):
        if registers_left(threads, blocks, target) > attempt.registers and blocks != schedule.blocks_per_sm:
            yield replace(schedule, blocks_per_sm=blocks)


def thinner(attempt: Attempt, problem: Problem) -> Iterator[Schedule]:
    """The schedule with fewer elements a thread: half of them along a dimension, again and again.

    Tiles that hold what is reduced whole stay whole. A loop's second stage reads fewer partials at once, unless it is a
    kernel of its own that did not spill.
    """
    schedule = attempt.schedule
    if (loop := schedule.persistent_loop) is not None:
        apart = loop.has_second_kernel and not attempt.second_stage
        if loop.second_stage_reads > 1 and not apart:
            yield schedule.with_loop(second_stage_reads=loop.second_stage_reads // 2)
        return
    whole = problem.reduced if schedule.persistence == "registers" else problem.reduced - {_chunked(schedule, problem)}
    while (halved := _halved(schedule, problem, whole)) is not None:
        yield halved
        schedule = halved


def _chunked(schedule: Schedule, problem: Problem) -> int | None:
    """The dimension whose chunks a schedule loops over, as in `fuse-tile-chunked`; None where nothing is reduced."""
    partial = [d for d in sorted(problem.reduced) if schedule.tile[d] != problem.extents[d]]
    return partial[0] if partial else max(problem.reduced, default=None)


def _halved(schedule: Schedule, problem: Problem, whole: frozenset[int]) -> Schedule | None:
    """The schedule with half of the elements of a thread along a dimension: of its repeats, or else of its vector."""
    if schedule.transposed is not None or any(schedule.layout.anywhere):
        return None
    for name in ("repeats", "vector"):
        parts: tuple[int, ...] = getattr(schedule.layout, name)
        for d, n in enumerate(parts):
            if n == 1 or d in whole:
                continue
            layout = replace(schedule.layout, **{name: tuple(-(-m // 2) if e == d else m for e, m in enumerate(parts))})
            return replace(schedule, tile=problem.tile_of(layout), layout=layout)
    return None


def _contractions_again(
    attempts: Sequence[Attempt], problem: ContractionProblem, target: Target, ranked: Mapping[Schedule, float]
) -> Iterator[Schedule]:
    """The first ranked schedules that leave threads more registers beside their sums, by what was lacking if any do.

    If one of these did not help, the epilogue goes fragment by fragment, and steps along k are shorter in the end.
    Where these take clearly longer by prediction, the epilogue goes fragment by fragment at once: the tile stays. That
    of a warpgroup is a loop already, which then loads nothing ahead.
    """
    last = attempts[-1]
    yield from roomier(last, target)
    had = max(_spare(attempt.schedule, problem, target) for attempt in attempts)
    more = [schedule for schedule in ranked if _spare(schedule, problem, target) > had]
    enough = [schedule for schedule in more if _spare(schedule, problem, target) >= had * last.lacking**0.5]
    if last.schedule.order == "breadth" and (len(attempts) > 1 or _loses(last.schedule, [*enough, *more], ranked)):
        yield replace(last.schedule, order="depth")
    yield from enough
    yield from more
    yield replace(last.schedule, order="depth")
    yield from shorter(least_spilling(attempts).schedule)


def _loses(schedule: Schedule, others: Sequence[Schedule], ranked: Mapping[Schedule, float]) -> bool:
    """Whether the first of other schedules is predicted to take clearly longer, or there is none."""
    return schedule in ranked and (not others or ranked[others[0]] > RESOLUTION * ranked[schedule])


def shorter(schedule: Schedule) -> Iterator[Schedule]:
    """The contraction with half as many elements along k a step, again and again: a thread copies fewer at once.

    Copies other than `cp.async` and TMA wait in registers, with an address and a condition each: elements of 16 bits
    one by one, and operands that the kernel computes. A warpgroup's copies are TMA's.
    """
    contraction = schedule.contraction
    if contraction is None or contraction.family.is_asynchronous:
        return
    while contraction.k % 2 == 0:
        contraction = replace(contraction, k=contraction.k // 2)
        yield replace(schedule, contraction=contraction)


def _lean_contractions(attempts: Sequence[Attempt], ranked: Sequence[Schedule]) -> Iterator[Schedule]:
    """Schedules whose epilogue goes fragment by fragment: the fastest with at most half of the sums a thread that were
    tried, then those with the fewest sums.
    """
    ranked = [replace(schedule, order="depth") for schedule in ranked]
    fewest = min(schedule.layout.elements_per_thread for schedule in ranked)
    held = min(attempt.schedule.layout.elements_per_thread for attempt in attempts)
    yield from (schedule for schedule in ranked if schedule.layout.elements_per_thread <= held // 2)
    yield from (schedule for schedule in ranked if schedule.layout.elements_per_thread == fewest)


def _spare(schedule: Schedule, problem: ContractionProblem, target: Target) -> int:
    """Registers that a thread has beside its sums."""
    family = family_schedules(schedule.contraction_part.instruction)
    return family.spare_registers(joined_schedule(schedule, problem), problem, target)

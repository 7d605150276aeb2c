"""Candidates of a contraction: tiles of the fastest instruction family that has any, whole, in persistent loops and
clusters, and with the splits that fill the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, prod

from mlirfuse.schedule.contractions.checks import MOST_AT_ONCE, check_contraction, words_at_once
from mlirfuse.schedule.contractions.family import FamilySchedules, family_schedules
from mlirfuse.schedule.contractions.grid import SHARED_COPY, contiguous_bytes, extents_of, own_products, tile_count
from mlirfuse.schedule.contractions.operand_sums import check_sums
from mlirfuse.schedule.contractions.several import apart, joined, joined_schedule
from mlirfuse.schedule.contractions.stages import MOST_STAGES, SPARE_BYTES, block_bytes, fits_block
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.model.registers import OTHER_REGISTERS
from mlirfuse.schedule.model.residency import blocks_by_memory, resident_blocks
from mlirfuse.schedule.parts.contraction import LONGEST_SUM, WHOLE
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, Target
from mlirfuse.target.instructions import FAMILIES

CLUSTERS, CLUSTER_COLUMNS = tuple(blocks for blocks in SHARED_COPY if blocks > 1), 128
"""Blocks of a cluster, whose tiles are neighbours and which copy the operand that they share for each other; and
columns of such tiles, at least."""

MOST_SPLIT = 1024
"""Blocks that share the steps of a tile, at most."""

WAITING_BLOCKS = 8
"""Blocks of an SM that hide each other's waiting at barriers, where threads copy or compute operands themselves."""

MOSTLY_ZEROS, FEW_RESULTS = 2.0, 1 << 20
"""Products that tiles multiply, to those that the result needs, from which on other instructions have candidates too;
and elements of such results at most, since warps that store their own fragments take longer than copies of tiles."""

MIN_STEPS = 4
"""Steps along k that a split leaves each block at least."""

RASTER = 8
"""Rows of tiles that blocks go through together where there are several waves of them."""

SQUARE = 4
"""Rows of tiles that blocks go through together where all of them run at once."""


def candidates(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """Every schedule that is worth predicting; where errors show, those that cut off less of long sums if any do.

    Several products that share an operand have those of the joined product that can be divided among them.
    """
    if problem.products == 1:
        yield from _candidates(problem, target)
        return
    for schedule in _candidates(joined(problem), target, divided=True):
        one = apart(schedule, problem)
        if one is not None and _fits(one, schedule, problem, target):
            yield one


def gains_along_k(problem: ContractionProblem, target: Target) -> bool:
    """Whether faster instructions would multiply the operands if both were contiguous along k."""
    if all(problem.k_contiguous):
        return False
    along_k = replace(problem, k_contiguous=(True, True))
    each = ([f for f in _fastest_first(target) if f.unsupported(p) is None] for p in (problem, along_k))
    as_it_is, fastest = (found[:1] for found in each)
    return fastest != as_it_is


def _fits(one: Schedule, whole: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether the tile of one of several products is legal, and fewer warps than hold the whole have the registers."""
    if check_contraction(one.contraction_part, one.tile, one.layout, problem) is not None:
        return False
    if one.layout.threads == whole.layout.threads:
        return True
    family = family_schedules(one.contraction_part.instruction)
    return family.spare_registers(joined_schedule(one, problem), joined(problem), target) >= OTHER_REGISTERS


def _candidates(problem: ContractionProblem, target: Target, *, divided: bool = False) -> Iterator[Schedule]:
    """The same for one product, whose tiles are to be divided among several if `divided`."""
    found = [_in_squares(schedule, problem) for schedule in _splits(problem, target, divided)]
    promoting = [_promoting(schedule, problem) for schedule in found]
    if promoting == found:
        yield from found
        return
    for schedule in promoting:
        if schedule.contraction_part.promote or not _is_long(schedule, problem):
            yield schedule


def _in_squares(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule of one wave with any sixteen consecutive blocks on a square of tiles.

    Such blocks are spread over the whole chip and read the same steps of four tiles of each operand at one time. Rows
    of at most four tiles are squares already. A last row of tiles by itself would be none, so that five rows then go
    together. Where the tiles of a split are counted at run time, the further divisions cost more than the squares save.
    """
    contraction = schedule.contraction_part
    is_short = extents_of(schedule, problem)[-1] <= SQUARE * schedule.tile[-1]
    counted = contraction.split > 1 and None in (problem.m, problem.n)
    if not contraction.family.is_tensor_core or max(contraction.raster, contraction.cluster) > 1 or is_short or counted:
        return schedule
    rows = ceil(extents_of(schedule, problem)[-2] / schedule.tile[-2])
    return schedule.with_contraction(raster=SQUARE + (rows > SQUARE and rows % SQUARE == 1))


def _promoting(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule with long sums promoted where errors would show and registers allow."""
    contraction = schedule.contraction_part
    fits = family_schedules(contraction.instruction).may_promote(schedule)
    promotes = problem.errors_show and not problem.element.is_float8 and _is_long(schedule, problem) and fits
    if not promotes:
        return schedule
    return schedule.with_contraction(promote=LONGEST_SUM // contraction.k)


def _is_long(schedule: Schedule, problem: ContractionProblem) -> bool:
    """Whether an accumulator of a block sums up more than `LONGEST_SUM` elements."""
    contraction = schedule.contraction_part
    return ceil(problem.steps(contraction.k) / contraction.tile_split) > LONGEST_SUM // contraction.k


def _tiles(problem: ContractionProblem, target: Target, divided: bool) -> Iterator[Schedule]:
    """A schedule for every tile, unsplit and without a persistent loop.

    Where every tile of an instruction multiplies mostly zeros in one step along k, the next slower one is as fast, and
    its smallest tiles are candidates too.
    """
    families = 0
    for family in _fastest_first(target):
        found = [
            schedule
            for schedule in (family.tiles(problem, target) if family.unsupported(problem) is None else ())
            if schedule.contraction and not check_sums(schedule.contraction_part, schedule.layout, problem)
        ]
        families += bool(found)
        overruns = [_overrun(schedule, problem) for schedule in found]
        least = min(overruns, default=1.0)
        if families > 1:
            found = [s for s, overrun in zip(found, overruns, strict=True) if overrun < MOSTLY_ZEROS * least]
        kept = found if divided else _least_that_cover(found, problem)
        yield from (schedule for schedule in kept if fits_block(schedule, problem, target))
        if families > 1 or (found and not (least >= MOSTLY_ZEROS and _is_little(found, problem))):
            return


def _is_little(schedules: Sequence[Schedule], problem: ContractionProblem) -> bool:
    """Whether each of these tiles makes a result of few elements in one step; not of windows that tensor maps copy."""
    if problem.windows != (None, None) or prod(extents_of(schedules[0], problem)) > FEW_RESULTS:
        return False
    return all(problem.steps(schedule.contraction_part.k) == 1 for schedule in schedules)


def _overrun(schedule: Schedule, problem: ContractionProblem) -> float:
    """What a schedule's tiles multiply, to the products that the result needs."""
    sides = zip(extents_of(schedule, problem)[-2:], schedule.tile[-2:], strict=True)
    depth = problem.steps(schedule.contraction_part.k) * schedule.contraction_part.k / max(1, problem.summed)
    return depth * prod(ceil(extent / tile) * tile / max(1, extent) for extent, tile in sides)


def _least_that_cover(schedules: Sequence[Schedule], problem: ContractionProblem) -> list[Schedule]:
    """The schedules without those of which another one has a smaller tile that covers a side of the result as well.

    Tensor maps copy the same rows for both, and the larger tile only multiplies more zeros; of threads that copy
    themselves a larger tile has more, so that all schedules of such families stay.
    """

    def alike(schedule: Schedule, side: int) -> tuple[object, ...]:
        contraction = schedule.contraction_part
        return schedule.tile[-2:][1 - side], contraction.k, contraction.swapped, contraction.consumer_groups

    def side_of(schedule: Schedule, side: int) -> int | None:
        return (problem.m, problem.n)[side != schedule.contraction_part.swapped]

    least: dict[tuple[object, ...], int] = {}
    for schedule, side in product(schedules, (0, 1)):
        extent, size = side_of(schedule, side), schedule.tile[-2:][side]
        if extent is not None and extent <= size:
            key = (side, *alike(schedule, side))
            least[key] = min(size, least.get(key, size))

    def is_least(schedule: Schedule) -> bool:
        sizes = schedule.tile[-2:]
        covers = all(sizes[side] <= least.get((side, *alike(schedule, side)), sizes[side]) for side in (0, 1))
        return covers or not schedule.contraction_part.family.is_asynchronous

    return [schedule for schedule in schedules if is_least(schedule)]


def _fastest_first(target: Target) -> list[FamilySchedules]:
    """The strategies of the families that the target has."""
    there = [family for family in FAMILIES.values() if family.exists_on(target)]
    return [family_schedules(f.name) for f in sorted(there, key=lambda f: f.flops_per_sm, reverse=True)]


def _splits(problem: ContractionProblem, target: Target, divided: bool) -> Iterator[Schedule]:
    """Every tile, whole, and with its steps along k spread over blocks."""
    known = None not in (*problem.batch, problem.m, problem.n)
    for schedule in _tiles(problem, target, divided):
        count = tile_count(schedule, problem)
        if known:
            yield from _in_clusters(schedule, problem, target)
        if schedule.contraction_part.consumer_groups > 1:
            if count > target.sms:
                yield _persistent(schedule, in_waves=True)
            continue
        family = family_schedules(schedule.contraction_part.instruction)
        if family.is_for_one_wave(schedule) and (count > target.sms or None in problem.expected):
            continue
        yield _streaming(_persistent(schedule, count > target.sms), problem, target)
        if not family.may_split(schedule):
            continue
        waits = not schedule.contraction_part.family.is_asynchronous or problem.computed_from != (None, None)
        blocks = target.sms * (WAITING_BLOCKS if waits else 1)
        longest = problem.outer_k * (problem.k // schedule.contraction_part.k) // MIN_STEPS
        if known and not waits:
            yield from _with_tail(schedule, count, longest, target)
        most = min(MOST_SPLIT, blocks // count, longest)
        # Blocks that wait for each other must all be resident, which is decided only where the grid's size is known.
        meets = known and not problem.accumulator_bytes
        for split in {2, most, min(most, target.sms // count), *(1 << bit for bit in range(1, 11))}:
            if 1 < split <= most:
                parts = schedule.with_contraction(split=split)
                yield _streaming(parts, problem, target)
                if meets and split * count <= _resident(schedule, problem, target):
                    yield from (_streaming(meeting, problem, target) for meeting in _meetings(parts, problem, target))


def _with_tail(schedule: Schedule, count: int, longest: int, target: Target) -> Iterator[Schedule]:
    """The schedule of several waves, the last of which has few tiles, with these spread over all SMs.

    Args:
        schedule: of whole tiles.
        count: the number of tiles.
        longest: blocks that share a tile, at most.
        target: the architecture.
    """
    tail = count % target.sms
    most = min(longest, target.sms // tail) if tail and count > target.sms else 1
    for split in {most, (most + 1) // 2}:
        if split > 1:
            yield _persistent(schedule, in_waves=True).with_contraction(tail=tail, split=split)


def _streaming(schedule: Schedule, problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with operands that leave the L2 first, where no later kernel would find them in the L2 anyway.

    Blocks that run together read a part of an operand together. Operands of more than half of the L2, whose two sides
    both keep what both have read, are gone when the next kernel starts. Partial tiles then stay in the L2, which makes
    splits gain from a quarter of its size on.
    """
    contraction = schedule.contraction_part
    sides = zip(extents_of(schedule, problem)[-2:], own_products(schedule, problem), strict=True)
    operands = sum(extent * own for extent, own in sides) * problem.summed * problem.element.bytes
    blocks = tile_count(schedule, problem) * contraction.split
    parts = blocks * prod(schedule.tile) * problem.accumulator.bytes
    gone = 2 * operands > target.l2_bytes or (contraction.split > 1 and 4 * (operands + parts) > target.l2_bytes)
    if not contraction.family.is_asynchronous or not gone or blocks > target.sms:
        return schedule
    return schedule.with_contraction(streamed=True)


def _in_clusters(schedule: Schedule, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """The schedules of unsplit tiles whose blocks copy the operand of the tile's rows for their neighbours, too.

    Only where copies take long because rows are no multiple of a line: elsewhere blocks that wait for each other are
    slower.
    """
    contraction = schedule.contraction_part
    is_slow = contraction.family.is_asynchronous and any(n % LINE for n in contiguous_bytes(problem))
    if not is_slow or problem.accumulator_bytes or schedule.tile[-1] < CLUSTER_COLUMNS:
        return
    columns = ceil(extents_of(schedule, problem)[-1] / schedule.tile[-1])
    for cluster in CLUSTERS:
        if columns % cluster == 0 and cluster <= target.max_cluster:
            yield _persistent(schedule.with_contraction(cluster=cluster), in_waves=True)


def _persistent(schedule: Schedule, in_waves: bool) -> Schedule:
    """The schedule of unsplit tiles where there are several waves: neighbouring tiles run at the same time, in a
    persistent loop where the instruction is asynchronous.
    """
    contraction = schedule.contraction_part
    if not contraction.family.is_tensor_core or not in_waves:
        return schedule
    persistent = contraction.family.is_asynchronous
    return schedule.with_contraction(raster=RASTER, persistent=persistent)


def _resident(schedule: Schedule, problem: ContractionProblem, target: Target) -> int:
    """Blocks that are resident at once whatever registers ptxas takes; one an SM of an asynchronous family."""
    threads = schedule.layout.threads
    if schedule.contraction_part.family.is_asynchronous:
        return target.sms
    by_registers = resident_blocks(threads, target.max_registers_per_thread, target)
    return target.sms * min(by_registers, blocks_by_memory(threads, block_bytes(schedule, problem), target))


def _meetings(schedule: Schedule, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """The schedules of a split whose partials are combined by slices, and through flag-in-data exchanges where these
    take them.

    Such blocks stage no results, so that the ring of an asynchronous family has all of the shared memory.
    """
    contraction = schedule.contraction_part
    if not contraction.family.is_asynchronous:
        for reduction in WHOLE:
            meeting = with_slices(schedule, reduction)
            if _reads_at_once(meeting) and _is_legal(meeting, problem):
                yield meeting
        return
    stage_bytes = sum(schedule.tile[-2:]) * contraction.k * problem.element.bytes
    stages = min(MOST_STAGES, (target.shared_per_block - SPARE_BYTES) // stage_bytes)
    deep = schedule.with_contraction(stages=stages)
    yield with_slices(deep)
    by_flags = with_slices(deep, "flagged")
    if _is_legal(by_flags, problem):
        yield by_flags


def _reads_at_once(schedule: Schedule) -> bool:
    """Whether threads have registers for the partial sums of their elements of a slice."""
    contraction = schedule.contraction_part
    assert contraction.second_stage_layout is not None
    return words_at_once(contraction, contraction.second_stage_layout) <= MOST_AT_ONCE


def _is_legal(schedule: Schedule, problem: ContractionProblem) -> bool:
    return check_contraction(schedule.contraction_part, schedule.tile, schedule.layout, problem) is None

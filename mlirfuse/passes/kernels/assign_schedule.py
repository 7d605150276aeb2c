"""`fuse-assign-schedule`: chooses each kernel's tile, layout and persistence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import functions, is_tile_program, kernels, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.scheduling.problem import narrow_accesses
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import GRID_REDUCTION, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError, errors_at
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passes.kernels.schedule_attempts import attempts_of, forget_attempts, report
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.attempts import Attempt, choose_contraction_again, choose_schedule_again
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.choice.records import AnyProblem, RecordKey, lookup, trial_of
from mlirfuse.schedule.contractions.checks import check_contraction, check_ring, check_whole_grid
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import UNKNOWN_EXTENT
from mlirfuse.schedule.contractions.several import joined, joined_schedule
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule, schedule_of
from mlirfuse.target import Target

Illegal = Callable[[Schedule], str | None]
"""Why a schedule is illegal for a kernel, or None."""


@dataclass(frozen=True)
class FuseAssignSchedule(Pass):
    """Puts `fuse.schedule` on every tensor kernel that has none; all later passes only read it.

    Requires kernels made by `fuse-segment`. The choice is a pure function of the kernel's iteration space, its traffic
    and the target (`mlirfuse/schedule/choice/choice.py`), for contractions of the machine, too
    (`predict/contraction_choice.py`). An existing schedule, of a test, a tuner or a user, is checked and kept.
    `fuse.grid_reduction` on the host function chooses how the partials of a persistent loop are combined; it is an
    error where no kernel whose schedule is chosen here has a persistent loop. Where the reduced dimension has an extent
    of 1, there are no partials, and the request is declined with a remark, as the same request serves all extents.
    `fuse.attempts` on the host function lists, by kernel, schedules that were compiled before, with the assembler's
    report: of those that spilled another schedule is then chosen, at most three times, and finally the one that spilled
    least; of others, whose registers leave few blocks resident, where another one is faster than they are with these
    (`schedule/choice/attempts.py`). With `tuned`, a schedule that tuning kept for the problem on this machine
    (`schedule/choice/records.py`) comes before the choice; it is declined with a remark where it is illegal or spills.

    ```mlir
    func.func private @f_0(...) attributes {fuse.kernel}
    ```
    becomes
    ```mlir
    func.func private @f_0(...) attributes {fuse.kernel,
      fuse.schedule = {tile = array<i64: 1, 4096>, layout = {...}, persistence = "registers", blocks_per_sm = 0 : i64}}
    ```

    Attributes:
        tuned: whether schedules that `mlirfuse tune` left on disk come before the cost model's.
    """

    name: ClassVar[str] = "fuse-assign-schedule"

    tuned: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        requests = _requests(module)
        attempts = attempts_of(module)
        given_schedules = {symbol(k) for k in kernels(module) if symbol(k) in requests and SCHEDULE in k.attributes}
        for kernel in kernels(module):
            if is_tile_program(kernel):
                remarks.declined(self, "already a tile program", kernel)
                continue
            space, structures = kernel_space(kernel)
            if 0 in space.extents:
                raise PassError(
                    f"{symbol(kernel)} has no elements: dimension {space.extents.index(0)} of its iteration space is 0",
                    where=kernel,
                    hint="only extents that are known at run time may be 0",
                )
            given = SCHEDULE in kernel.attributes
            tried = attempts.get(symbol(kernel), ())
            if not given:
                with errors_at(kernel):
                    grid_reduction = requests.get(symbol(kernel), "auto")
                    problem = kernel_problem(kernel, (space, structures))
                    illegal = partial(_check, kernel=kernel, space=space, structures=structures, target=target)
                    measured = self._measured(problem, kernel, target, grid_reduction, tried, illegal, remarks)
                    chosen, origin = measured or _choose(problem, target, machine, grid_reduction, tried, illegal)
                kernel.attributes[SCHEDULE] = chosen.attribute()
            schedule = schedule_of(kernel)
            if reason := _check(schedule, kernel, space, structures, target):
                raise ScheduleError(f"the schedule of {symbol(kernel)} is illegal: {reason}", where=kernel)
            layout = schedule.layout
            plain = not given and schedule.contraction is None and not any(layout.anywhere)
            if plain and (reason := narrow_accesses(kernel, space)):
                remarks.declined(self, reason, kernel)
            remarks.applied(
                self,
                f"{symbol(kernel)}: {'given' if given else origin} tile {schedule.tile}, {layout.threads} threads, "
                f"{layout.elements_per_thread} elements a thread, cluster {layout.cluster}, {schedule.persistence}, "
                f"{schedule.order} first{_rows(layout)}{_visits(schedule)}{_products(schedule)}",
                kernel,
            )
            if tried:
                report(self, kernel, schedule, tried, remarks, kept="is given" if given else f"is {origin}")
        forget_attempts(module)
        self._check_requests(module, requests, given_schedules, remarks)

    def _check_requests(
        self, module: ir.Operation, requests: Mapping[str, str], given: Collection[str], remarks: Remarks
    ) -> None:
        """Raises `PassError` where no kernel has a grid reduction for the requested second stage.

        A reduction over an extent of 1, which has no partials to combine, only gives a remark.
        """
        asked = [kernel for kernel in kernels(module) if symbol(kernel) in requests]
        loops = [loop for kernel in asked if (loop := schedule_of(kernel).persistent_loop) is not None]
        for grid_reduction in dict.fromkeys(requests.values()):
            if any(loop.grid_reduction == grid_reduction for loop in loops):
                continue
            trivial = [
                kernel
                for kernel in asked
                if requests[symbol(kernel)] == grid_reduction and _reduces_an_extent_of_one(kernel)
            ]
            if trivial and not loops:
                reason = (
                    f"grid_reduction={grid_reduction!r} has nothing to combine: {symbol(trivial[0])} reduces over "
                    f"an extent of 1"
                )
                remarks.declined(self, reason, trivial[0])
                continue
            whose = "without a given schedule " if given else ""
            why = "a given schedule chooses its own second stage" if given else "no partials are left to combine"
            hint = f'leave grid_reduction at "auto", its default: {why}'
            raise PassError(
                f"grid_reduction={grid_reduction!r} was asked for, but no kernel {whose}reduces over the grid",
                where=module,
                hint=hint,
            )

    def _measured(
        self,
        problem: AnyProblem,
        kernel: ir.Operation,
        target: Target,
        grid_reduction: str,
        tried: Sequence[Attempt],
        illegal: Illegal,
        remarks: Remarks,
    ) -> tuple[Schedule, str] | None:
        """The schedule that tuning tries, or that it kept, and its origin; None where there is none that can be used.

        Raises:
            ScheduleError: the schedule on trial cannot be used.
        """
        if not self.tuned:
            return None
        key = RecordKey(problem, target, device_of_module(kernel.parent.operation), grid_reduction)
        trial, record = trial_of(key), lookup(key)
        schedule = trial or (None if record is None else record.schedule)
        if schedule is None:
            return None
        reason = _failed(schedule, tried) or illegal(schedule)
        if reason is None:
            return schedule, "on trial" if trial else "tuned"
        if trial:
            raise ScheduleError(f"the schedule on trial cannot be used: {reason}", where=kernel)
        remarks.declined(self, f"the tuned schedule of {symbol(kernel)} is not used: {reason}", kernel)
        return None


def _choose(
    problem: AnyProblem,
    target: Target,
    machine: MachineModel,
    grid_reduction: str,
    tried: Sequence[Attempt],
    illegal: Illegal,
) -> tuple[Schedule, str]:
    """The schedule and its origin; a schedule that was not attempted before, if there is one."""

    def legal(schedule: Schedule) -> bool:
        return illegal(schedule) is None

    if isinstance(problem, Problem):
        if tried:
            return choose_schedule_again(tried, problem, target, grid_reduction, legal, machine), "chosen again"
        return choose_schedule(problem, target, grid_reduction, machine), "chosen"
    if tried:
        return choose_contraction_again(tried, problem, target, machine, legal), "chosen again"
    unknown = None in (*problem.batch, problem.m, problem.n)
    extents = ", ".join(str(extent or UNKNOWN_EXTENT) for extent in problem.expected)
    guess = f", for a result of the expected extents {extents}," if unknown else ""
    return choose_contraction(problem, target, machine), f"chosen{guess}"


def _failed(schedule: Schedule, tried: Sequence[Attempt]) -> str | None:
    """What was wrong with a schedule when it was compiled before, or None."""
    attempt = next((attempt for attempt in tried if attempt.schedule == schedule), None)
    if attempt is None or not attempt.failed:
        return None
    return f"it cannot be compiled ({attempt.refused})" if attempt.refused else f"it spills {attempt.spilled} bytes"


def _products(schedule: Schedule) -> str:
    """The words of a remark about a contraction; empty for other kernels."""
    contraction = schedule.contraction
    if contraction is None:
        return ""
    tail = f" in the last {contraction.tail} tiles" if contraction.tail else ""
    return f", products by {contraction.instruction}, k split over {contraction.split} block(s){tail}"


def _visits(schedule: Schedule) -> str:
    """The words of a remark about a grid persistent kernel; empty for other kernels."""
    part = schedule.grid_persistent
    return "" if part is None else f", grid persistent, {part.kept_tiles} tiles of a block kept in shared memory"


def _rows(layout: BlockedLayout) -> str:
    """The words of a remark about unaligned rows; empty for aligned ones."""
    if layout.is_shifted_to_lines:
        return ", rows shifted to cache lines"
    if layout.is_shifted:
        return ", rows shifted to aligned vectors"
    return ", rows realigned in shared memory" if layout.is_realigned else ""


def _requests(module: ir.Operation) -> dict[str, str]:
    """The requested second stage of grid reductions for each kernel without a schedule; empty without a request."""
    untiled = {symbol(kernel) for kernel in kernels(module) if not is_tile_program(kernel)}
    return {
        callee(call): ir.StringAttr(function.attributes[GRID_REDUCTION]).value
        for function in functions(module)
        if GRID_REDUCTION in function.attributes
        for call in calls(function)
        if callee(call) in untiled
    }


def _reduces_an_extent_of_one(kernel: ir.Operation) -> bool:
    """Whether some reduction of a kernel on tensors runs over an extent of 1, which needs no loop."""
    space, structures = kernel_space(kernel)
    return any(space.loops[s.op][loop] is None for s in structures for loop in s.reduction_loops)


def _check(
    schedule: Schedule, kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure], target: Target
) -> str | None:
    """Why a schedule is illegal for the kernel, or None."""
    contraction = contraction_in(space, structures)
    if contraction is None:
        if schedule.contraction is not None:
            return "it is a contraction's, and the kernel has none"
        return check_schedule(schedule, space.extents, space.reduced_dims, target)
    if schedule.contraction is None:
        return "the kernel is a contraction, and the schedule has no `contraction`"
    oriented = contraction.swapped() if schedule.contraction.swapped else contraction
    extents = tuple(space.extents[d] for d in oriented.parallel)
    problem = contraction_problem(kernel, space, contraction)
    whole, everything = joined_schedule(schedule, problem), joined(problem)
    assert whole.contraction is not None
    return (
        check_schedule(schedule, extents, frozenset(), target)
        or check_contraction(schedule.contraction, schedule.tile, schedule.layout, problem)
        or family_schedules(schedule.contraction.instruction).check_registers(
            whole.contraction, whole.layout, whole.blocks_per_sm, target
        )
        or check_ring(whole.contraction, whole.tile, everything, target)
        or check_whole_grid(schedule.contraction, schedule.tile, schedule.layout, extents, problem, target)
    )

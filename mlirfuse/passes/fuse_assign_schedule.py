"""`fuse-assign-schedule`: decides how each kernel is tiled and spread over threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels, symbol
from mlirfuse.analysis.problem import problem_of
from mlirfuse.analysis.spaces import kernel_space
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.schedule.heuristics import choose_schedule
from mlirfuse.schedule.schedule import ATTRIBUTE, check_schedule, schedule_of
from mlirfuse.target import DEFAULT, target_of


@dataclass(frozen=True)
class FuseAssignSchedule(Pass):
    """Puts `fuse.schedule` on every tensor kernel that has none; all later passes only read it.

    Requires kernels made by `fuse-segment`. The choice is a pure function of the kernel's iteration space, its traffic
    and the target (`mlirfuse/schedule/heuristics.py`). A schedule that is there already is checked and kept: that is
    how a test pins one, a tuner records one, and a user overrides one.

    ```mlir
    func.func private @f_0(...) attributes {fuse.kernel}
    ```
    becomes
    ```mlir
    func.func private @f_0(...) attributes {fuse.kernel,
      fuse.schedule = {tile = array<i64: 1, 4096>, layout = {...}, persistence = "registers", blocks_per_sm = 0 : i64}}
    ```

    Attributes:
        target: the architecture whose limits the schedule respects.
    """

    name: ClassVar[str] = "fuse-assign-schedule"

    target: str = DEFAULT

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of(self.target)
        for kernel in kernels(module):
            if is_tile_program(kernel):
                remarks.declined(self, "already a tile program", kernel)
                continue
            space, structures = kernel_space(kernel)
            if 0 in space.extents:
                raise PassError(
                    f"{symbol(kernel)} has no elements: dimension {space.extents.index(0)} of its iteration space is 0",
                    where=str(kernel.location),
                    hint="only extents that are known at run time may be 0",
                )
            given = ATTRIBUTE in kernel.attributes
            if not given:
                problem = problem_of(kernel, space, structures)
                kernel.attributes[ATTRIBUTE] = choose_schedule(problem, target).attribute()
            schedule = schedule_of(kernel)
            if reason := check_schedule(schedule, space.extents, space.reduced_dims, target):
                raise ScheduleError(
                    f"the schedule of {symbol(kernel)} is illegal: {reason}", where=str(kernel.location)
                )
            layout = schedule.layout
            remarks.applied(
                self,
                f"{symbol(kernel)}: {'given' if given else 'chosen'} tile {schedule.tile}, {layout.threads} threads, "
                f"{layout.elements_per_thread} elements a thread, cluster {layout.cluster}, {schedule.persistence}, "
                f"{schedule.order} first",
                kernel,
            )

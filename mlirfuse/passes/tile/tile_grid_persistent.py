"""`fuse-tile-grid-persistent`: kernels of statistics over the grid become tile programs of two visits, or of one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.grid_persistent import grid_persistent_ops
from mlirfuse.analysis.kernels import is_tile_program, kernels, stored_values
from mlirfuse.analysis.loops.iteration_space import Conflict
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.errors import ScheduleError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.tiling.program import mark_equal_extents, open_kernel
from mlirfuse.tiling.reduction.grid_persistent import emit_grid_persistent, workspace_of


@dataclass(frozen=True)
class FuseTileGridPersistent(Pass):
    """Turns a kernel on tensors into a tile program of resident blocks that visit their tiles twice, or once.

    Requires `fuse.schedule` with `grid_persistent`, and reductions over the same dimensions, none of which needs
    another one: sums, maxima and the like, `fuse.moments` and `fuse.exp_sum`. The other dimensions are divided into
    slices, of which each has blocks of its own, its members. A block visits its tiles in an `scf.for` that carries
    partial results, one for each position in the tile; it reduces these over the tile, stores them to workspace
    arguments, and arrives at the semaphore of its slice. When all members have arrived, each reads and combines all
    partial results of the slice in the order of members, runs the ops that need the reductions, and visits its tiles
    again, where it computes what varies along them anew and writes results. The first `kept_tiles` tiles of a block
    are copied to shared memory, all at once by asynchronous copies, and stay there in between; the others are read
    again, the last one first. The first member writes results that do not vary along the tiles. Rows past the end of
    the data are masked. Where no tile needs a reduction, and one of these is a joint one, tiles are visited once: no
    member waits, and the last one to arrive combines all partial results and writes what depends on them.

    ```mlir
    func.func private @f_0(%x: tensor<25088x64xf16>) -> tensor<25088x64xf16> attributes {fuse.kernel,
        fuse.schedule = {grid_persistent = {dims = array<i64: 0>, kept_tiles = 2 : i64}, ...}} {
      %sum, %m2 = "fuse.moments"(%h) {dims = array<i64: 0>} ...
      linalg.generic ins(%h, %mean, %rstd) ...
    ```
    becomes
    ```mlir
    func.func private @f_0_kernel(%x: memref<25088x64xf16>, %y: memref<25088x64xf16>, %sums: memref<?x64xf32>, ...,
        %semaphores: memref<32xi32>) attributes {fuse.cooperative, ...} {
      scf.forall (%block) in (%blocks) {
        scf.for %n = %c0 to %c2 step %c1 { ... fuse.copy_fragments(%x, %slot, ...), nvvm.cp.async.commit.group }
        %partials:3 = scf.for %tile = %member to %kept step %members { ... nvvm.cp.async.wait.group 2 ... }
        %more:3 = scf.for %tile = %kept to %tiles step %members iter_args(%partials) { ... }
        vector.multi_reduction ..., vector.transfer_write %sum, %sums[%member, %column]
        fuse.semaphore_arrive, fuse.semaphore_wait
        scf.for %partial = %c0 to %members step %c64 { ... }
        fuse.semaphore_arrive
        scf.for ... { vector.transfer_write %y_tile, %y }   // tiles read again, the last one first
        scf.for ... { vector.transfer_write %y_tile, %y }   // tiles from shared memory
    ```
    """

    name: ClassVar[str] = "fuse-tile-grid-persistent"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            schedule = schedule_of(kernel)
            if schedule.grid_persistent is None:
                remarks.declined(self, "scheduled with one visit of each tile", kernel)
                continue
            space, structures = kernel_space(kernel)
            plan = grid_persistent_ops(space, structures, stored_values(kernel))
            if isinstance(plan, Conflict):
                raise ScheduleError(f"a grid persistent kernel cannot compute this: {plan.reason}", where=plan.op)
            if plan.dims != schedule.grid_persistent.dims:
                raise ScheduleError(
                    f"the schedule reduces dimensions {schedule.grid_persistent.dims}, the reductions are over "
                    f"{plan.dims}",
                    where=kernel,
                )
            frame = open_kernel(kernel, workspace_of(space, plan, schedule))
            mark_equal_extents(frame, space)
            emit_grid_persistent(frame, space, plan, schedule)
            frame.close()
            slices = prod(schedule.grid_persistent.slices(schedule.tile, space.extents))
            message = (
                f"tiles of {schedule.tile}, {len(plan.reductions)} statistic(s) of {slices} slice(s), "
                f"{schedule.grid_persistent.kept_tiles} tile(s) of a block kept in shared memory"
            )
            remarks.applied(self, message, frame.function.operation)

"""`fuse-tile-grid-reduction`: kernels whose reductions run over more than a tile become persistent tile programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.grid_reduction import GridReduction, grid_reduction, kept_dims
from mlirfuse.analysis.kernels import functions, is_tile_program, kernels, stored_values, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.errors import ScheduleError
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.parts.persistent_loop import GRID_REDUCTIONS
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.tiling.program import mark_equal_extents, open_kernel
from mlirfuse.tiling.reduction.grid_reduction import emit_grid_reduction, workspace_of
from mlirfuse.tiling.reduction.reduction_ops import element_type
from mlirfuse.tiling.reduction.second_kernel import emit_two_kernels


@dataclass(frozen=True)
class FuseTileGridReduction(Pass):
    """Turns a kernel on tensors into a tile program of resident blocks that loop over the reduced rows together.

    Requires `fuse.schedule` with a `persistent_loop`. A reduction over the looped dimensions becomes a tile of partial
    results that an `scf.for` carries, with extent 1 in the dimensions that a thread alone has all of a tile along, over
    which it is reduced first, or, of products without periods, into the tile of partial results; everything else that
    varies along them runs once a tile, reductions inside of it included. A block takes every so many-th tile, or
    `consecutive` ones, of the whole or of one of the `slices` of the dimension of threads' vectors. Each block that has
    tiles stores its partial results to a workspace argument. When all have arrived, the blocks add them up, a slice of
    the columns each (`grid_reduction = "grid_sync"`), or the one that arrives last does (`"last_block"`), and run the
    ops that depend on the reductions. With `"atomics"` the blocks add their partial results atomically to a few rows of
    sums (`fuse.accumulate`), and the last block adds up these rows and leaves them zero; reductions must be sums of
    f32, and their last bits differ from run to run. With `"second_kernel"` the partial results are an output, with a
    row for each of the schedule's `blocks`, which a second kernel reduces; the host calls both. Rows past the end of
    the data are masked with the neutral element. Tiles hold whole rows, unless the schedule loops over the innermost
    dimension too, which reductions along both dimensions allow.

    ```mlir
    func.func private @f_0(%x: tensor<?x4096xf32>) -> tensor<4096xf32>
        attributes {fuse.kernel, fuse.schedule = {persistent_loop = {grid_reduction = "grid_sync", ...}, ...}} {
      %0 = linalg.generic {iterator_types = ["reduction", "parallel"]} ...
    ```
    becomes
    ```mlir
    func.func private @f_0_kernel(%x: memref<?x4096xf32>, %y: memref<4096xf32>,
        %partials: memref<?x4096xf32> {fuse.workspace = "scratch", ...}, %semaphore: memref<1xi32> {...}) {
      scf.forall (%block) in (%blocks) {
        %sums = scf.for %tile = %block to %tiles step %blocks iter_args(%acc = %zero) -> vector<2x4096xf32> { ... }
        scf.if %has_tile {
          %partial = vector.multi_reduction <add>, %sums, %none [0]
          vector.transfer_write %partial, %partials[%block, %c0]
        }
        fuse.semaphore_arrive, fuse.semaphore_wait
        scf.for %slice = %block to %slices step %blocks { ... } {fuse.second_stage}
        fuse.semaphore_arrive
    ```
    """

    name: ClassVar[str] = "fuse-tile-grid-reduction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            schedule = schedule_of(kernel)
            if schedule.persistent_loop is None:
                remarks.declined(self, "scheduled without a persistent loop", kernel)
                continue
            space, structures = kernel_space(kernel)
            whole_rows = space.rank - 1 not in schedule.persistent_loop.dims
            plan = grid_reduction(space, structures, stored_values(kernel), whole_rows=whole_rows)
            if isinstance(plan, Conflict):
                raise ScheduleError(f"a persistent loop cannot compute this kernel: {plan.reason}", where=plan.op)
            if plan.outer_dims != schedule.persistent_loop.dims:
                raise ScheduleError(
                    f"the schedule loops over dimensions {schedule.persistent_loop.dims}, the reductions are over "
                    f"{plan.outer_dims}",
                    where=kernel,
                )
            if schedule.persistent_loop.slices > 1:
                _require_sums_alone(kernel, space, plan, schedule.layout.vector_dim)
            if schedule.persistent_loop.grid_reduction == "atomics":
                _require_float_sums(plan.reductions)
            name = symbol(kernel)
            if schedule.persistent_loop.has_second_kernel:
                launches = [call for function in functions(module) for call in calls(function) if callee(call) == name]
                tiled = emit_two_kernels(kernel, space, plan, schedule, launches)
            else:
                frame = open_kernel(kernel, workspace_of(space, plan, schedule))
                mark_equal_extents(frame, space)
                emit_grid_reduction(frame, space, plan, schedule)
                frame.close()
                tiled = frame.function.operation
            message = (
                f"tiles of {schedule.tile}, {len(plan.reductions)} grid reduction(s), combined by "
                f"{GRID_REDUCTIONS[schedule.persistent_loop.grid_reduction]}"
            )
            remarks.applied(self, message, tiled)


def _require_sums_alone(kernel: ir.Operation, space: IterationSpace, plan: GridReduction, inner: int) -> None:
    """Raises `ScheduleError` for what blocks with a slice of dimension `inner` cannot compute."""
    made = {result for s in plan.tile for result in s.op.results}
    if any(s.reduction_loops for s in plan.tile) or made & set(stored_values(kernel)):
        raise ScheduleError("blocks have slices in kernels that only sum over all tiles", where=kernel)
    for reduction in plan.reductions:
        if inner not in kept_dims(space, reduction):
            reason = f"a reduction does not keep dimension {inner}, of which blocks have slices"
            raise ScheduleError(reason, where=reduction.op)


def _require_float_sums(reductions: Sequence[OpStructure]) -> None:
    """Raises `ScheduleError` for a reduction that cannot be added up atomically."""
    for reduction in reductions:
        combiner, type_ = combiner_of(reduction).name, element_type(reduction)
        if combiner != "arith.addf" or not isinstance(type_, ir.F32Type):
            raise ScheduleError(
                f"a reduction that combines {type_} by {combiner} cannot be combined by atomics, which are sums of f32",
                where=reduction.op,
                hint='choose another grid_reduction: "grid_sync", "last_block" or "second_kernel"',
            )

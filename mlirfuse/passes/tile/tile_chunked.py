"""`fuse-tile-chunked`: kernels whose rows do not fit the registers process them in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.errors import ScheduleError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import Schedule, schedule_of
from mlirfuse.tiling.program import open_tile_program, ragged_dims
from mlirfuse.tiling.reduction.multi_pass import emit_multi_pass


@dataclass(frozen=True)
class FuseTileChunked(Pass):
    """Turns a kernel on tensors into a tile program of passes over rows in chunks.

    Requires `fuse.schedule` with `persistence = "shared"` or `"multi_pass"`. There is one pass a reduction, and one to
    write what needs all of them. Each pass is an `scf.for` that carries a tile of partial results; a remainder that
    does not fill a chunk is a smaller tile after the loop. Where the tile is smaller than the extent in several reduced
    dimensions (`"multi_pass"` only), loops are nested, and the tile divides the extents of all of these dimensions but
    one. Where the extent is known at run time (`"multi_pass"` only), the last chunk is masked, and the results of every
    32 chunks are combined separately, for the accuracy of long sums. With `"shared"`, what the first pass reads is kept
    in the block's shared memory; with `"multi_pass"`, later passes read it again. Each pass computes only the values
    that it needs. With `"multi_pass"`, results are written by the first pass that can compute them.

    ```mlir
    func.func private @f_0(%x: tensor<?x65536xf32>) -> tensor<?xf32>
        attributes {fuse.kernel, fuse.schedule = {persistence = "multi_pass", tile = array<i64: 1, 8192>, ...}} { ... }
    ```
    becomes
    ```mlir
    scf.forall (%block) in (%blocks) {
      %partial = scf.for %column = %c0 to %c65536 step %c8192 iter_args(%acc = %zero) -> vector<1x8192xf32> {
        %0 = vector.transfer_read %x[%block, %column] ... : vector<1x8192xf32>
        %1 = arith.addf %acc, %0
        scf.yield %1
      }
      %sum = vector.multi_reduction <add>, %partial, %init [1]
    ```
    """

    name: ClassVar[str] = "fuse-tile-chunked"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            schedule = schedule_of(kernel)
            if schedule.persistence == "registers":
                remarks.declined(self, "scheduled with persistence = 'registers'", kernel)
                continue
            space, structures = kernel_space(kernel)
            *outer, chunked = _chunked_dims(schedule, space, structures, kernel)
            program = open_tile_program(kernel, space, schedule.tile)
            with program.block_body():
                emit_multi_pass(program, space, structures, schedule, chunked, outer)
            program.close()
            around = f", in loops along {outer}" if outer else ""
            remarks.applied(
                self, f"chunks of {schedule.tile[chunked]} along dimension {chunked}{around}", program.function
            )


def _chunked_dims(
    schedule: Schedule, space: IterationSpace, structures: Sequence[OpStructure], kernel: ir.Operation
) -> list[int]:
    """The reduced dimensions that are processed in chunks, from the outermost loop to the innermost one.

    The innermost loop runs along the last of them in memory, or along the one whose extent the tile does not divide.
    """
    if joint := next((s.op.name for s in structures if s.op.name in JOINT_REDUCTIONS), None):
        raise ScheduleError(
            f"{joint} needs whole rows in a tile", where=kernel, hint="run the fuse-expand passes first"
        )
    if not space.reduced_dims:
        raise ScheduleError("chunked persistence needs a reduction", where=kernel, hint="schedule it with 'registers'")
    partial = sorted(d for d in space.reduced_dims if schedule.tile[d] != space.extents[d])
    if len(partial) < 2:
        return partial or [max(space.reduced_dims)]
    if schedule.persistence == "shared":
        raise ScheduleError(
            f"tile {schedule.tile} is partial in dimensions {partial}; rows in shared memory are chunked along one",
            where=kernel,
        )
    if any(dims and not dims.issuperset(partial) for dims in space.reduced.values()):
        raise ScheduleError(
            f"tile {schedule.tile} is partial in dimensions {partial}, which not all reductions reduce", where=kernel
        )
    ragged = ragged_dims(space, schedule.tile) & set(partial)
    if len(ragged) > 1:
        raise ScheduleError(
            f"tile {schedule.tile} does not divide the extents of dimensions {sorted(ragged)}; it may leave a "
            f"remainder in one",
            where=kernel,
        )
    innermost = max(ragged or partial)
    return [*(d for d in partial if d != innermost), innermost]

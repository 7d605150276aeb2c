"""`fuse-tile-persistent`: turns kernels whose tiles hold whole reduced dimensions into tile programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import by_reduction_depth
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.errors import ScheduleError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import Schedule, check_grid_order, schedule_of
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import TileProgram, open_tile_program
from mlirfuse.tiling.transfers import TileTransfers


@dataclass(frozen=True)
class FuseTilePersistent(Pass):
    """Turns a kernel on tensors into a tile program that keeps each row on chip between reduction and use.

    Requires `fuse.schedule` on the kernel, with `persistence = "registers"` and a tile that holds every reduced
    dimension whole; kernels scheduled otherwise are left to `fuse-tile-chunked`. In a kernel without reductions tiles
    may split every dimension. Blocks follow one another as the schedule's `grid_order` says; where its `transposed` has
    `mirrored`, the tiles at (i, j) and (j, i) are neighbours. Every input is read once and every result is written
    once. Ops are emitted in the order of the number of reductions that they depend on, so that independent reductions
    share one exchange.

    ```mlir
    func.func private @f_0(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32>
        attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 4096>, ...}} { linalg ... }
    ```
    becomes
    ```mlir
    func.func private @f_0(tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {fuse.launch = @f_0_kernel, ...}
    func.func private @f_0_kernel(%x: memref<?x4096xf32>, %y: memref<?x4096xf32>) attributes {fuse.kernel, ...} {
      scf.forall (%block) in (%blocks) {
        %0 = vector.transfer_read %x[%row, %c0] ... : vector<1x4096xf32>
        ...
        vector.transfer_write %n, %y[%row, %c0]
      }
    }
    ```
    """

    name: ClassVar[str] = "fuse-tile-persistent"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            schedule = schedule_of(kernel)
            if schedule.persistence != "registers":
                remarks.declined(self, f"scheduled with persistence = {schedule.persistence!r}", kernel)
                continue
            space, structures = kernel_space(kernel)
            check_tile(schedule, space, kernel)
            mirrored = schedule.transposed is not None and schedule.transposed.mirrored
            order = schedule.grid_order
            program = open_tile_program(kernel, space, schedule.tile, mirrored=mirrored, grid_order=order)
            with program.block_body():
                _emit(program, space, structures, schedule)
            program.close()
            remarks.applied(self, f"tile {schedule.tile}", program.function)


def check_tile(schedule: Schedule, space: IterationSpace, kernel: ir.Operation) -> None:
    """Raises `ScheduleError` where a persistent tile does not fit the space."""
    if len(schedule.tile) != max(space.rank, 1):
        raise ScheduleError(
            f"tile {schedule.tile} does not have the iteration space's {space.rank} dimensions", where=kernel
        )
    if schedule.transposed and (problem := schedule.transposed.check_mirrored(schedule.tile, space.extents)):
        raise ScheduleError(problem, where=kernel)
    if schedule.grid_order and (problem := check_grid_order(schedule)):
        raise ScheduleError(problem, where=kernel)
    for d in space.reduced_dims:
        if schedule.tile[d] != space.extents[d]:
            raise ScheduleError(
                f"tile {schedule.tile} does not hold the {space.extents[d]} elements of reduced dimension {d} whole",
                where=kernel,
                hint="persistence in registers needs whole rows; use 'shared' or 'multi_pass' for chunks",
            )


def _emit(program: TileProgram, space: IterationSpace, structures: Sequence[OpStructure], schedule: Schedule) -> None:
    transfers = TileTransfers(space, schedule.tile, program.offsets, program.ragged, program.buffers)
    emitter = TileEmitter(transfers, dict(program.scalars))
    # Reads of the whole tile come first, as they take longest.
    for (op, number), axes in space.use_axes.items():
        value = op.operands[number]
        if value in program.buffers and len({d for d in axes if d is not None}) == space.rank:
            transfers.read(value, axes)
    for structure in by_reduction_depth(structures):
        emitter.emit(structure)
    for value, buffer in program.results:
        emitter.write(value, buffer)

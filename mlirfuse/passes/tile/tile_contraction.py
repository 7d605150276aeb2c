"""`fuse-tile-contraction`: kernels with a contraction become tile programs with a loop along k."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.contractions.contraction_operands import producers
from mlirfuse.analysis.contractions.epilogues import Epilogue, epilogue_of
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure, is_constant
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.contractions.checks import check_contraction
from mlirfuse.schedule.contractions.operand_sums import sum_columns
from mlirfuse.schedule.schedule import Schedule, schedule_of
from mlirfuse.support.rewriting import defining_op, integer_of, number_of
from mlirfuse.tiling.contractions.k_loop import KLoop, result_space
from mlirfuse.tiling.contractions.summed_operand import SummedOperand
from mlirfuse.tiling.contractions.tile_reductions import TileReductions
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import TileProgram, open_tile_program
from mlirfuse.tiling.tiles import zero
from mlirfuse.tiling.transfers import TileTransfers


@dataclass(frozen=True)
class FuseTileContraction(Pass):
    """Turns a kernel with a contraction into a tile program: one block a tile of the result, with a loop along k.

    Requires `fuse.schedule` with a `contraction`. The loop carries the accumulators, one tile vector of the result's
    dimensions (batch, m, n) for each product of the op, and contracts tiles of the operands into it; products that
    share an operand share its tile. Prologues of operands are emitted in the loop, on the operand's tile; all other ops
    on the accumulators' tile behind the loop. Initial values other than zeros are added behind the loop too, as blocks
    that share a loop must add them once. Sums of operand A are carried by the loop beside the accumulators, as columns
    of partial sums (`tiling/contractions/summed_operand.py`). Reductions of the epilogue over several tiles synchronise
    blocks by semaphores (`tiling/contractions/tile_reductions.py`). Operands are read in their memory order; the
    indexing maps of the `vector.contract` give the roles of their dimensions. A `swapped` schedule exchanges the roles
    of rows and columns, so that the accumulators' tile is a transposed one. What lies past the end of an operand reads
    as zero.

    ```mlir
    func.func private @f_0(%x: tensor<?x512xbf16>, %w: tensor<384x512xbf16>) -> tensor<?x384xf32>
        attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 128, 128>, contraction = {k = 32, ...}, ...}}
    ```
    becomes
    ```mlir
    scf.forall (%block) in (%blocks) {
      %acc = scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
        %a = vector.transfer_read %x[%m, %k], %pad {in_bounds = [false, true]} : ..., vector<128x32xbf16>
        %b = vector.transfer_read %w[%n, %k], %pad {in_bounds = [true, true]} : ..., vector<128x32xbf16>
        %next = vector.contract {fuse.instruction = "mma", ...} %a, %b, %sum : ... into vector<128x128xf32>
        scf.yield %next
      }
      vector.transfer_write %acc, %y[%m, %n]
    }
    ```
    """

    name: ClassVar[str] = "fuse-tile-contraction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            schedule = schedule_of(kernel)
            if schedule.contraction is None:
                remarks.declined(self, "scheduled without a contraction", kernel)
                continue
            space, structures = kernel_space(kernel)
            contraction = contraction_in(space, structures)
            if contraction is None:
                raise ScheduleError("the schedule is a contraction's, and the kernel has none", where=kernel)
            problem = contraction_problem(kernel, space, contraction)
            if reason := check_contraction(schedule.contraction, schedule.tile, schedule.layout, problem):
                raise ScheduleError(f"the schedule is illegal: {reason}", where=kernel)
            if schedule.contraction.swapped:
                contraction = contraction.swapped()
            tiles = result_space(space, contraction)
            grid = replace(tiles, reduced={})  # reductions are over several tiles
            raster, cluster = schedule.contraction.raster, schedule.contraction.cluster
            program = open_tile_program(kernel, grid, schedule.tile, raster, cluster)
            with program.block_body():
                _emit_tile(program, space, tiles, contraction, schedule, structures)
            program.close()
            remarks.applied(self, f"tile {schedule.tile}, {schedule.contraction.k} a step along k", program.function)


def _emit_tile(
    program: TileProgram,
    space: IterationSpace,
    tiles: IterationSpace,
    contraction: Contraction,
    schedule: Schedule,
    structures: Sequence[OpStructure],
) -> None:
    """Emits a block's program: the loop along k, the epilogue on its tile, and its part in reductions over tiles."""
    assert schedule.contraction is not None  # checked by run
    product = contraction.structure
    factors = list(product.operands)[: -len(product.op.results)]
    computed = {s.op for factor in factors for s in producers(factor)} | {product.op}
    computed -= _shared_with_epilogue(structures, computed, product.op)
    epilogue = epilogue_of(space, contraction, [s for s in structures if s.op not in computed])
    if not isinstance(epilogue, Epilogue):
        raise PassError(epilogue[1], where=epilogue[0].op)
    several = frozenset(d for d, extent in enumerate(tiles.extents) if extent != schedule.tile[d])
    transfers = TileTransfers(tiles, schedule.tile, program.offsets, program.ragged, program.buffers, divided=several)
    emitter = TileEmitter(transfers, dict(program.scalars))
    step, made = schedule.contraction.k, epilogue.operand_sums
    if made and made[0].number not in contraction.sides[0]:
        raise ScheduleError("an operand's sums need tiles whose rows are the operand's", where=product.op)
    summed = None
    if made:
        columns, chunk = sum_columns(schedule.contraction, schedule.layout)
        place = (program.offsets, program.buffers, program.scalars)
        summed = SummedOperand(space, contraction, made, schedule.tile, step, columns, chunk, *place)
    loop = KLoop(
        space,
        contraction,
        schedule.tile,
        schedule.contraction.k,
        program.offsets,
        program.ragged,
        program.buffers,
        program.scalars,
        schedule.contraction.instruction,
        summed,
    )
    count = len(product.op.results)
    starts = list(product.operands)[-count:]
    adds = [not _is_zero(start) for start in starts]
    if any(adds) and count > 1:
        raise PassError("several products in one kernel start from zeros", where=product.op)
    initial = [
        arith.ConstantOp(start.type.element_type, zero(start.type.element_type)).result
        if added
        else emitter.operand(product, len(product.operands) - count + number)
        for number, (start, added) in enumerate(zip(starts, adds, strict=True))
    ]
    accumulators = loop.emit(initial)
    before = {s.op for start, added in zip(starts, adds, strict=True) if added for s in producers(start)}
    for structure in epilogue.tile:
        if structure.op in before:
            emitter.emit(structure)
    for result, sums, added in zip(product.op.results, accumulators[:count], adds, strict=True):
        emitter.values[result] = emitter.combined(product, sums) if added else sums
    if summed is not None:
        emitter.values.update(summed.results(emitter, accumulators[count:]))
    for structure in epilogue.tile:
        if structure.op not in before:
            emitter.emit(structure)
    deferred = {result for s in (*epilogue.reductions, *epilogue.second_stage) for result in s.op.results}
    for value, buffer in program.results:
        if value not in deferred:
            emitter.write(value, buffer)
    if epilogue.reductions:
        TileReductions(program, emitter, epilogue).emit()


def _is_zero(start: ir.Value) -> bool:
    """Whether a product's initial values are zeros."""
    if not is_constant(start):
        return False
    number = start.owner.operation.operands[0]
    return integer_of(number) == 0 or number_of(number) == 0


def _shared_with_epilogue(
    structures: Sequence[OpStructure], computed: AbstractSet[ir.Operation], product: ir.Operation
) -> set[ir.Operation]:
    """The ops of the operands' expressions that the epilogue needs as well, and repeats on its own tile."""
    found: set[ir.Operation] = set()
    values = [operand for s in structures if s.op not in computed for operand in s.operands]
    while values:
        owner = defining_op(values.pop())
        if owner is not None and owner in computed and owner != product and owner not in found:
            found.add(owner)
            values.extend(owner.operands)
    return found

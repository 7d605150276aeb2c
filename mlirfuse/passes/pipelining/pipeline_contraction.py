"""`fuse-pipeline-contraction`: a contraction's k-loop becomes a producer and consumers around a ring of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.analysis.memory.mapped_views import mapped_view
from mlirfuse.analysis.memory.strided_views import may_be_reversed
from mlirfuse.dialect.attributes import ALIGN, CLUSTER, PRECISION
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of
from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MAX_BOX, MAX_RANK, SWIZZLE_BYTES, TENSOR_MAP_STRIDE, WARPGROUP
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.precision import IEEE
from mlirfuse.support.rewriting import defining_op
from mlirfuse.support.strides import row_major
from mlirfuse.target.instructions import FAMILIES, InstructionFamily
from mlirfuse.tiling.contractions.cluster_uniform import is_cluster_uniform, tile_multiple
from mlirfuse.tiling.contractions.family import FamilyPipelining, family_pipelining
from mlirfuse.tiling.contractions.loops import TileOperand, contraction_loop, contraction_loops
from mlirfuse.tiling.contractions.pipelined_tile import PipelinedTile, can_be_persistent
from mlirfuse.tiling.memory import alignment, strides


@dataclass(frozen=True)
class FusePipelineContraction(Pass):
    """Splits the loop along k into a producer that copies tiles to a ring of stages, and consumers that multiply them.

    Requires a tile program with one loop that contracts by an asynchronous instruction such as `wgmma`, a schedule with
    a `contraction` (its `stages` are the ring's) and a layout of the instruction's accumulators. The operands must be
    what a tensor map can describe: arguments with `fuse.align = 16` and stride 1 along the tile's last dimension, or
    gathered views of them that are windows of images or boxes of filters (`analysis/memory/mapped_views.py`), whose
    tiles have whole 128-byte swizzle atoms and a multiple of 8 and at most 256 rows. For `wgmma` they are f16 or bf16,
    or float8 or f32 in tf32 with k contiguous. Otherwise the pass declines. What an instruction takes, and how it
    multiplies a stage, is in `tiling/contractions/families`. The epilogue moves to the consumers unchanged. One
    multiplication stays under way while the next stage is awaited; the stage before is released then. With `promote` in
    the schedule, groups of that many steps are summed from zero, and the sums added in f32 by CUDA cores, as tensor
    cores truncate addends to fit the accumulator. With `persistent` both roles loop over the block's tiles, so that the
    ring does not run empty between them. With `consumer_groups`, ping-pong consumer groups alternate over the tiles:
    while the products of one run, another runs its tile's epilogue. With a `cluster`, neighbouring blocks, which must
    have the same tiles of operand A, copy a part of them each to all; a persistent grid has whole clusters. Of an
    operand's last tile only existing rows are copied, if their number is static, k is contiguous and the values of
    other rows are unused (`fuse.undefined` on the read); where the operand has several tiles, the producer branches to
    a copy of fewer rows for the last. Blocks of a cluster share copies of whole tiles. Sums of operands, which the loop
    carries beside the accumulators, are made from a full stage while the products of the stage before are under way.

    ```mlir
    %acc = scf.for %k = %c0 to %c4096 step %c64 iter_args(%sum = %zero) -> (vector<128x256xf32>) {
      %a = vector.transfer_read %A[%m, %k], %pad : memref<?x4096xbf16>, vector<128x64xbf16>
      %b = vector.transfer_read %B[%n, %k], %pad : memref<4096x4096xbf16>, vector<256x64xbf16>
      %next = vector.contract {fuse.instruction = "wgmma", ...} %a, %b, %sum : ...
    }
    vector.transfer_write %acc, %C[%m, %n]
    ```
    becomes
    ```mlir
    "fuse.mbarrier_init"(%full) {arrivals = 1 : i64} : ...
    "fuse.mbarrier_init"(%empty) {arrivals = 2 : i64} : ...
    gpu.barrier
    "fuse.warp_roles"() ({
      %acc:3 = scf.for %i = %c0 to %c64 step %c1 iter_args(%sum = %zero, %stage = %c0, %parity = %c0_i32) -> ... {
        "fuse.mbarrier_wait"(%full, %stage, %parity) : ...
        %1 = "fuse.warpgroup_mma"(%ra, %rb, %stage, %sum) {a_major = "k", b_major = "k"} : ...
        %2 = "fuse.warpgroup_wait"(%1) {pending = 1 : i64} : ...
        scf.if %not_first { "fuse.mbarrier_arrive"(%empty, %previous) {warpgroups = 2 : i64} : ... }
      }
      %done = "fuse.warpgroup_wait"(%acc#0) {pending = 0 : i64} : ...
      vector.transfer_write %done, %C[%m, %n]
    }, {
      scf.for %i = %c0 to %c64 step %c1 iter_args(%stage = %c0, %parity = %c0_i32) -> ... {
        "fuse.mbarrier_wait"(%empty, %stage, %other_parity) : ...
        "fuse.mbarrier_expect"(%full, %stage) {bytes = 49152 : i64} : ...
        "fuse.async_load"(%A, %ra, %stage, %full, %m, %k) {dims = array<i64: 0, 1>} : ...
        "fuse.async_load"(%B, %rb, %stage, %full, %n, %k) {dims = array<i64: 0, 1>} : ...
      }
    }) {warpgroups = array<i64: 2, 1>, registers = array<i64: 232, 40>} : () -> ()
    ```

    Raises `PassError` where the schedule asks for a persistent grid or a cluster that the tile program does not allow.
    """

    name: ClassVar[str] = "fuse-pipeline-contraction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            loops = list(contraction_loops(kernel)) if is_tile_program(kernel) else []
            for loop, name in loops:
                family = family_pipelining(name)
                if family is None:
                    continue
                plan = _plan(kernel, loop, FAMILIES[name], family)
                if isinstance(plan, str):
                    remarks.declined(self, plan, loop)
                    continue
                plan.emit()
                if plan.peers > 1:
                    kernel.attributes[CLUSTER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), plan.peers)
                remarks.applied(self, _summary(plan), kernel)


def _summary(plan: PipelinedTile) -> str:
    """The text of a remark about a plan."""
    consumer_groups = f" in each of {plan.consumer_groups} consumer groups" if plan.consumer_groups > 1 else ""
    grid = ", persistent" if plan.persistent else ""
    clusters = f", clusters of {plan.peers}" if plan.peers > 1 else ""
    return f"{plan.stages} stages, {plan.consumers} warpgroups of consumers{consumer_groups}{grid}{clusters}"


def _plan(
    kernel: ir.Operation, loop: ir.Operation, instruction: InstructionFamily, family: FamilyPipelining
) -> PipelinedTile | str:
    """The plan for a loop, or why it cannot be pipelined; raises `PassError` for an impossible grid."""
    schedule = schedule_of(kernel)
    if schedule.contraction is None:
        return "the kernel's schedule has no contraction"
    k_loop = contraction_loop(loop)
    if isinstance(k_loop, str):
        return k_loop
    layout = schedule.layout
    if layout.cluster > 1 or not family.holds_accumulators(layout):
        return f"the layout is not that of {instruction.name}'s accumulators"
    if loop.parent.name != "scf.forall":
        return "the loop along k does not stand in the loop over blocks"
    attribute = k_loop.contracts[0].attributes.get(PRECISION)
    precision = IEEE if attribute is None else ir.StringAttr(attribute).value
    for operand in k_loop.operands:
        if problem := _operand_problem(kernel, operand, precision, family):
            return problem
    given = schedule.contraction
    consumers = layout.threads // WARPGROUP
    tile = PipelinedTile(
        k_loop,
        family,
        given.stages,
        consumers,
        instruction.producer_threads // WARPGROUP,
        given.persistent,
        given.cluster,
        promote=given.promote,
        streamed=given.streamed,
        blocks_per_sm=max(1, schedule.blocks_per_sm),
        consumer_groups=given.consumer_groups,
    )
    problem = (can_be_persistent(tile) if given.persistent else None) or (
        _cluster_problem(tile) if tile.peers > 1 else None
    )
    if problem:
        raise PassError(f"the schedule cannot be followed: {problem}", where=loop)
    return tile


def _cluster_problem(tile: PipelinedTile) -> str | None:
    """Why the blocks of a cluster cannot share the copies of operand A, or None."""
    number, a = tile.blocks.regions[0].blocks[0].arguments[0], tile.k_loop.a
    if a.rows % (8 * tile.peers):
        return f"{tile.peers} blocks cannot share a tile of {a.rows} rows"
    own = tile.k_loop.loop.regions[0].blocks[0].arguments[0]
    if not all(
        index == own or is_cluster_uniform(index, number, tile.peers) for index in (*a.indices, *tile.bounds_of_k)
    ):
        return f"{tile.peers} neighbouring blocks do not have the same tiles of operand A"
    if tile_multiple(tile.blocks) % tile.peers:
        return f"the number of tiles is no multiple of {tile.peers}"
    return None


def _operand_problem(
    kernel: ir.Operation, operand: TileOperand, precision: str, family: FamilyPipelining
) -> str | None:
    """Why a tensor map, or the instruction, cannot take an operand; None if it can."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    view = defining_op(operand.source)
    if view is not None and view.name == DEFINITION.full_name:
        if problem := _view_problem(view, operand):
            return problem
        number = arguments.index(view.operands[0])
    elif operand.source in arguments:
        number = arguments.index(operand.source)
    else:
        return "an operand is not an argument of the kernel"
    type_ = ir.MemRefType(operand.source.type)
    if problem := family.unsupported(type_.element_type, operand.major, precision):
        return problem
    known = argument_attributes(kernel)[number]
    align = known.get(ALIGN)
    if align is None or alignment(type_, operand.dims[1], ir.IntegerAttr(align).value) < TENSOR_MAP_STRIDE:
        return f"argument {number} is not aligned to {TENSOR_MAP_STRIDE} bytes, which a tensor map needs"
    steps, _ = type_.get_strides_and_offset()
    if steps[operand.dims[1]] != 1 or 0 in steps or type_.rank > MAX_RANK or may_be_reversed(known):
        return f"argument {number} has a rank or strides that a tensor map cannot describe"
    width = operand.columns * from_mlir(type_.element_type).bytes
    if width % SWIZZLE_BYTES or operand.rows % 8 or operand.rows > MAX_BOX:
        return f"tiles of {operand.rows} rows of {width} bytes do not fit the {SWIZZLE_BYTES}-byte swizzle"
    return None


def _view_problem(view: ir.Operation, operand: TileOperand) -> str | None:
    """Why no tensor map copies an operand's tiles of a gathered view; None if one does."""
    source = ir.MemRefType(view.operands[0].type)
    if strides(source) != row_major(source.shape):
        return "the source of a gathered view is not contiguous"
    gather = gather_of(view.attributes)
    mapped = mapped_view(gather, source.shape, from_mlir(source.element_type).bytes)
    if isinstance(mapped, str):
        return mapped
    if mapped.row != operand.dims[0]:
        return "rows of the tiles are along the contiguous dimension of a gathered view"
    if mapped.im2col is None and gather.basis[mapped.row][-1] % operand.rows:
        return f"tiles of {operand.rows} rows straddle components of a gathered view"
    return None

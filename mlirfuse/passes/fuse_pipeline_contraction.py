"""`fuse-pipeline-contraction`: a contraction's k-loop becomes a producer and consumers around a ring of stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, scf, vector

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.dialect.shared_memory import PANEL_BYTES, WARPGROUP
from mlirfuse.dialect.warp_roles import warp_roles
from mlirfuse.dialect.warpgroup_mma import warpgroup_mma
from mlirfuse.dialect.warpgroup_wait import warpgroup_wait
from mlirfuse.dtypes import from_mlir
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import clone
from mlirfuse.schedule.schedule import Schedule, schedule_of
from mlirfuse.tiling.contraction_loops import ContractionLoop, TileOperand, contraction_loop, contraction_loops
from mlirfuse.tiling.stage_ring import MAX_BOX, TMA_ALIGNMENT, StageRing, Turn, allocate_ring

PRODUCERS = 1  # warpgroups of the producer: register budgets are a warpgroup's
PRODUCER_REGISTERS = 40
REGISTERS_PER_SM = 65536
MOST_REGISTERS = 240  # what setmaxnreg may ask for that a consumer can use


@dataclass(frozen=True)
class FusePipelineContraction(Pass):
    """Splits the loop along k into a producer that copies tiles to a ring of stages, and consumers that multiply them.

    Requires a tile program with one loop that contracts by `wgmma`, a schedule with a `contraction` (its `stages` are
    the ring's) and a layout of wgmma's accumulators. The factors must be what a tensor map can describe: f16 or bf16
    arguments with `fuse.align = 16` and stride 1 along the tile's last dimension, whose tiles have whole 128-byte
    panels and a multiple of 8 and at most 256 rows. Otherwise the kernel is declined. The consumers run the epilogue,
    which is moved as it is. One multiplication stays under way while the next stage is awaited; the stage before is
    released then.

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
    """

    name: ClassVar[str] = "fuse-pipeline-contraction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            loops = list(contraction_loops(kernel, "wgmma")) if is_tile_program(kernel) else []
            for loop in loops:
                schedule = schedule_of(kernel)
                plan = _plan(kernel, loop, schedule)
                if isinstance(plan, str):
                    remarks.declined(self, plan, loop)
                    continue
                _pipeline(plan)
                remarks.applied(self, f"{plan.stages} stages, {plan.consumers} warpgroups of consumers", kernel)


@dataclass(frozen=True)
class Plan:
    """What becomes of a loop.

    Attributes:
        parts: the loop along k.
        stages: of the ring.
        consumers: warpgroups that multiply.
    """

    parts: ContractionLoop
    stages: int
    consumers: int


def _plan(kernel: ir.Operation, loop: ir.Operation, schedule: Schedule) -> Plan | str:
    """The plan for a loop, or why it cannot be pipelined."""
    if schedule.contraction is None:
        return "the kernel's schedule has no contraction"
    parts = contraction_loop(loop)
    if isinstance(parts, str):
        return parts
    layout = schedule.layout
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.within(d), layout.vector[d]) for d in (m, n)]
    if held != [(8, 2, 1), (4, 1, 2)] or layout.warps[n] != 1 or layout.warps[m] % 4 or layout.cluster > 1:
        return "the layout is not that of wgmma's accumulators"
    if loop.parent.name != "scf.forall":
        return "the loop along k does not stand in the loop over blocks"
    for operand in (parts.a, parts.b):
        if problem := _operand_problem(kernel, operand):
            return problem
    return Plan(parts, schedule.contraction.stages, layout.threads // WARPGROUP)


def _operand_problem(kernel: ir.Operation, operand: TileOperand) -> str | None:
    """Why a tensor map, or wgmma, cannot take a factor; None if it can."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    if operand.source not in arguments:
        return "a factor is not an argument of the kernel"
    number = arguments.index(operand.source)
    type_ = ir.MemRefType(operand.source.type)
    if str(type_.element_type) not in ("f16", "bf16"):
        return f"wgmma does not multiply {type_.element_type} here"
    align = argument_attributes(kernel)[number].get("fuse.align")
    if align is None or ir.IntegerAttr(align).value < TMA_ALIGNMENT:
        return f"argument {number} is not aligned to {TMA_ALIGNMENT} bytes, which a tensor map needs"
    strides, _ = type_.get_strides_and_offset()
    if strides[operand.dims[1]] != 1 or 0 in strides:
        return f"argument {number} has strides that a tensor map cannot describe"
    width = operand.columns * from_mlir(type_.element_type).bytes
    if width % PANEL_BYTES or operand.rows % 8 or operand.rows > MAX_BOX:
        return f"tiles of {operand.rows} rows of {width} bytes do not fit the {PANEL_BYTES}-byte swizzle"
    return None


def _pipeline(plan: Plan) -> None:
    parts, consumers = plan.parts, plan.consumers
    loop = parts.loop
    block = loop.block
    following = list(block.operations)
    epilogue = [op.operation for op in following[following.index(loop) + 1 : -1]]
    with ir.InsertionPoint(loop), loop.location:
        ring = allocate_ring(plan.stages, (parts.a, parts.b), consumers)
        lower, upper, step, _ = loop.operands
        steps = arith.ceildivsi(arith.subi(upper, lower), step)
        consumer, producer = warp_roles((consumers, PRODUCERS), _registers(consumers))
    with ir.InsertionPoint(producer), loop.location:
        _produce(parts, ring, steps)
        vector.YieldOp([])
    with ir.InsertionPoint(consumer), loop.location:
        total = _consume(parts, ring, steps)
        loop.results[0].replace_all_uses_with(total)
        end = vector.YieldOp([])
    for op in epilogue:
        op.move_before(end)
    loop.erase()


def _produce(parts: ContractionLoop, ring: StageRing, steps: ir.Value) -> None:
    """The producer's loop: what computes the tiles' indices is cloned into it."""
    lower, _, step, _ = parts.loop.operands

    def fill(number: ir.Value, turn: Turn, carried: list[ir.Value]) -> list[ir.Value]:
        mapping = {parts.loop.regions[0].blocks[0].arguments[0]: arith.addi(lower, arith.muli(number, step))}
        for op in parts.addressing:
            clone(op, mapping)
        operands = (parts.a, parts.b)
        ring.fill(turn, operands, [[mapping.get(i, i) for i in operand.indices] for operand in operands])
        return carried

    _for_each_stage(ring, steps, [], fill)


def _consume(parts: ContractionLoop, ring: StageRing, steps: ir.Value) -> ir.Value:
    """The consumers' loop, and the wait for its last multiplication; returns the accumulators."""

    def multiply(number: ir.Value, turn: Turn, carried: list[ir.Value]) -> list[ir.Value]:
        ring.await_full(turn)
        a, b = ring.buffers
        sums = warpgroup_mma(a, b, turn.stage, carried, parts.a.major, parts.b.major)
        sums = warpgroup_wait(sums, 1)
        # All but this multiplication are done: the stage before may be filled again.
        not_first = arith.cmpi(arith.CmpIPredicate.ne, number, arith.constant(ir.IndexType.get(), 0))
        branch = scf.IfOp(not_first)
        with ir.InsertionPoint(branch.then_block):
            ring.release(ring.previous_stage(turn))
            scf.YieldOp([])
        return sums

    (total,) = _for_each_stage(ring, steps, [parts.loop.operands[3]], multiply)
    return warpgroup_wait([total], 0)[0]


def _for_each_stage(
    ring: StageRing,
    steps: ir.Value,
    initial: list[ir.Value],
    body: Callable[[ir.Value, Turn, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop over all steps, which takes turns at the ring's stages; returns what it carries besides."""
    index, first = ir.IndexType.get(), ring.first_turn()
    zero, one = arith.constant(index, 0), arith.constant(index, 1)
    loop = scf.ForOp(zero, steps, one, [*initial, first.stage, first.parity])
    with ir.InsertionPoint(loop.body):
        *carried, stage, parity = loop.inner_iter_args
        turn = Turn(stage, parity)
        results = body(loop.induction_variable, turn, carried)
        following = ring.next_turn(turn)
        scf.YieldOp([*results, following.stage, following.parity])
    return list(loop.results)[: len(initial)]


def _registers(consumers: int) -> tuple[int, int]:
    """Registers of a consumer's and of the producer's threads: the block has all of the multiprocessor's."""
    warpgroups = consumers + PRODUCERS
    start = REGISTERS_PER_SM // (warpgroups * WARPGROUP) // 8 * 8
    shared = (start * warpgroups - PRODUCER_REGISTERS * PRODUCERS) // consumers // 8 * 8
    return min(shared, MOST_REGISTERS), PRODUCER_REGISTERS

"""A ring of shared-memory stages between a producer and consumers, with full and empty barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, gpu, memref, scf

from mlirfuse.dialect.async_load import async_load
from mlirfuse.dialect.attributes import PHASE
from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_expect import mbarrier_expect
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait
from mlirfuse.dialect.shared_memory import stage_bytes, workgroup_memref
from mlirfuse.schedule.model.machine import SWIZZLE_ALIGNMENT
from mlirfuse.tiling.contractions.loops import TileOperand
from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class PipelineState:
    """A role's position in the ring, carried through the role's loop (CUTLASS: PipelineState).

    Attributes:
        stage: number of the stage, an index.
        parity: parity of the ring's phase, an i32.
    """

    stage: ir.Value
    parity: ir.Value


@dataclass(frozen=True)
class StageRing:
    """Shared-memory buffers of `stages` stages with their mbarriers.

    Attributes:
        stages: number of stages.
        buffers: one buffer for each operand, of shape (stages, rows, columns).
        full: barriers whose phase completes when a stage's data have arrived.
        empty: barriers whose phase completes when all consumers have released a stage.
        consumers: consumer warpgroups.
        peers: blocks of the cluster that share operand A's copies; 1 without a cluster.
        streamed: whether copies use the L2 policy evict-first.
    """

    stages: int
    buffers: tuple[ir.Value, ...]
    full: ir.Value
    empty: ir.Value
    consumers: int
    peers: int
    streamed: bool

    def first_state(self) -> PipelineState:
        """Stage 0 in the first phase."""
        return PipelineState(arith.constant(ir.IndexType.get(), 0), arith.constant(ir.IntegerType.get_signless(32), 0))

    def next_state(self, state: PipelineState) -> PipelineState:
        """The next stage; after the last one, stage 0 in the next phase."""
        index, i32 = ir.IndexType.get(), ir.IntegerType.get_signless(32)
        following = arith.addi(state.stage, arith.constant(index, 1))
        wraps = arith.cmpi(arith.CmpIPredicate.eq, following, arith.constant(index, self.stages))
        other = arith.xori(state.parity, arith.constant(i32, 1))
        return PipelineState(
            arith.select(wraps, arith.constant(index, 0), following), arith.select(wraps, other, state.parity)
        )

    def skip(self, state: PipelineState, count: ir.Value) -> PipelineState:
        """The pipeline state `count` (an index) stages later."""
        stages, i32 = arith.constant(ir.IndexType.get(), self.stages), ir.IntegerType.get_signless(32)
        later = arith.addi(state.stage, count)
        wraps = arith.andi(arith.index_cast(i32, arith.divui(later, stages)), arith.constant(i32, 1))
        return PipelineState(arith.remui(later, stages), arith.xori(state.parity, wraps))

    def previous_stage(self, state: PipelineState) -> ir.Value:
        """The number of the stage before `state`."""
        index = ir.IndexType.get()
        is_first = arith.cmpi(arith.CmpIPredicate.eq, state.stage, arith.constant(index, 0))
        before = arith.subi(state.stage, arith.constant(index, 1))
        return arith.select(is_first, arith.constant(index, self.stages - 1), before)

    def fill(
        self, state: PipelineState, operands: Sequence[TileOperand], indices: Sequence[Sequence[ir.Value]]
    ) -> None:
        """The producer waits until the stage is empty, and starts the copies of all operands' tiles into it."""
        # A wait with parity 1 on a fresh barrier returns at once: no stage has to be released in the first phase.
        one = arith.constant(ir.IntegerType.get_signless(32), 1)
        mbarrier_wait(self.empty, state.stage, arith.xori(state.parity, one))
        self._copy(state, operands, indices, [])

    def _copy(
        self,
        state: PipelineState,
        operands: Sequence[TileOperand],
        indices: Sequence[Sequence[ir.Value]],
        rows: list[int],
    ) -> None:
        """Emits the copies of a stage, with the numbers of rows in `rows` for the first operands.

        Recurses over the other operands, and branches for one whose last tile has fewer rows: a copy's size is fixed
        by its tensor map.
        """
        number = len(rows)
        if number == len(operands):
            self._copy_rows(state, operands, indices, rows)
            return
        operand, is_shared = operands[number], number == 0 and self.peers > 1
        last = operand.rows if is_shared else operand.last_rows
        if last == operand.rows or operand.last_start == 0:
            self._copy(state, operands, indices, [*rows, last])
            return
        start = indices[number][operand.dims[0]]
        is_last = arith.cmpi(arith.CmpIPredicate.sge, start, arith.constant(ir.IndexType.get(), operand.last_start))
        branch = scf.IfOp(is_last, has_else=True)
        for block, copied in ((branch.then_block, last), (branch.else_block, operand.rows)):
            with ir.InsertionPoint(block):
                self._copy(state, operands, indices, [*rows, copied])
                scf.YieldOp([])

    def _copy_rows(
        self,
        state: PipelineState,
        operands: Sequence[TileOperand],
        indices: Sequence[Sequence[ir.Value]],
        rows: Sequence[int],
    ) -> None:
        """Emits the expected bytes of a stage and the copies of `rows[i]` rows of each operand i."""
        stages = [ir.MemRefType(buffer.type) for buffer in self.buffers]
        nbytes = sum(stage_bytes(s) // o.rows * n for s, o, n in zip(stages, operands, rows, strict=True))
        mbarrier_expect(self.full, state.stage, nbytes)
        shares = [self.peers, *[1] * (len(operands) - 1)]
        for buffer, operand, places, peers, copied in zip(self.buffers, operands, indices, shares, rows, strict=True):
            # The stages feed wgmma, which multiplies f32 operands as tf32.
            tf32 = isinstance(ir.MemRefType(buffer.type).element_type, ir.F32Type)
            async_load(
                operand.source,
                buffer,
                state.stage,
                self.full,
                places,
                operand.dims,
                peers,
                rows=copied,
                tf32=tf32,
                streamed=self.streamed,
            )

    def await_full(self, state: PipelineState) -> None:
        """The consumers wait for the stage's data."""
        mbarrier_wait(self.full, state.stage, state.parity)

    def release(self, stage: ir.Value) -> None:
        """The consumers are done with a stage."""
        mbarrier_arrive(self.empty, stage, self.consumers, self.peers)


def allocate_ring(
    stages: int, operands: Sequence[TileOperand], consumers: int, peers: int, *, streamed: bool
) -> StageRing:
    """Allocates a ring in shared memory, initialises its barriers, and synchronises the block or cluster."""
    i64 = ir.IntegerType.get_signless(64)

    def allocate(shape: Sequence[int], element: ir.Type, alignment: int) -> ir.Value:
        op = memref.AllocOp(workgroup_memref(shape, element), [], [], alignment=ir.IntegerAttr.get(i64, alignment))
        if alignment == SWIZZLE_ALIGNMENT:
            # Buffers of later phases reuse the memory once the last stage is read.
            op.operation.attributes[PHASE] = ir.IntegerAttr.get(i64, 0)
        return op.result

    buffers = tuple(
        allocate(
            (stages, operand.rows, operand.columns), ir.MemRefType(operand.source.type).element_type, SWIZZLE_ALIGNMENT
        )
        for operand in operands
    )
    full, empty = (allocate((stages,), i64, 16) for _ in range(2))
    mbarrier_init(full, 1)
    mbarrier_init(empty, consumers * peers)  # a copy into the stages of all peers waits for the consumers of all
    if peers > 1:
        cluster_barrier()
    else:
        gpu.BarrierOp()
    return StageRing(stages, buffers, full, empty, consumers, peers, streamed)


def for_each_stage(
    ring: StageRing,
    start: PipelineState,
    steps: ir.Value,
    initial: list[ir.Value],
    body: Callable[[ir.Value, PipelineState, list[ir.Value]], list[ir.Value]],
) -> tuple[list[ir.Value], PipelineState]:
    """Emits a loop over steps that advances through the ring; returns the carried values and the next state.

    `body` gets the step's number, the pipeline state and the carried values, and returns the new carried values.
    """
    loop = scf.ForOp(index(0), steps, index(1), [*initial, start.stage, start.parity])
    with ir.InsertionPoint(loop.body):
        *carried, stage, parity = loop.inner_iter_args
        state = PipelineState(stage, parity)
        results = body(loop.induction_variable, state, carried)
        following = ring.next_state(state)
        scf.YieldOp([*results, following.stage, following.parity])
    *accumulators, stage, parity = loop.results
    return accumulators, PipelineState(stage, parity)

"""Emits a contraction tile as warp-specialised code: a producer and consumers that share a ring of stages.

The thread block may be persistent and loop over several tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

from mlir import ir
from mlir.dialects import affine, arith, scf, vector

from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.module_target import target_around
from mlirfuse.dialect.operand_tile import first_of
from mlirfuse.dialect.resident_blocks import resident_blocks
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.dialect.staged_tile import staged_tile
from mlirfuse.dialect.warp_roles import warp_roles
from mlirfuse.schedule.model.registers import warpgroup_registers
from mlirfuse.support.rewriting import clone, defining_op, erase, integer_of
from mlirfuse.tiling.contractions.family import Emitter, FamilyPipelining, nothing
from mlirfuse.tiling.contractions.loops import OPERAND_TILE, ContractionLoop
from mlirfuse.tiling.contractions.order_barrier import OrderBarrier, allocate_order_barrier
from mlirfuse.tiling.contractions.stage_ring import PipelineState, StageRing, allocate_ring, for_each_stage
from mlirfuse.tiling.program import forall

Mapping = dict[ir.Value, ir.Value]
"""Maps values of the original tile program to their replacements."""


@dataclass(frozen=True)
class PipelinedTile:
    """The warp-specialised form of a loop over blocks that contains one loop along k.

    Attributes:
        k_loop: the loop along k.
        family: the products of the instruction family.
        stages: number of stages in the ring.
        consumers: consumer warpgroups, which multiply.
        producers: warpgroups of the producer, as register budgets are a warpgroup's.
        persistent: whether the grid has at most as many blocks as the device holds, each looping over tiles.
        peers: blocks of a cluster; 1 without clusters.
        promote: steps along k between promotions of the tensor cores' accumulators to f32 registers; 0 for none.
        streamed: whether operands are loaded with the L2 policy evict-first.
        blocks_per_sm: resident blocks of an SM, so that one block's epilogue overlaps another's products.
        consumer_groups: ping-pong consumer groups, which alternate over the tiles of a persistent block.
    """

    k_loop: ContractionLoop
    family: FamilyPipelining
    stages: int
    consumers: int
    producers: int
    persistent: bool
    peers: int
    promote: int = 0
    streamed: bool = False
    blocks_per_sm: int = 1
    consumer_groups: int = 1

    @property
    def blocks(self) -> ir.Operation:
        """The `scf.forall` over blocks."""
        return self.k_loop.loop.parent

    @property
    def bounds_of_k(self) -> list[ir.Value]:
        """Lower and upper bound of the loop along k."""
        return list(self.k_loop.loop.operands)[:2]

    @cached_property
    def prologue(self) -> list[ir.Operation]:
        """Ops of the block before the loop along k."""
        ops = [op.operation for op in self.blocks.regions[0].blocks[0].operations]
        return ops[: ops.index(self.k_loop.loop)]

    @cached_property
    def epilogue(self) -> list[ir.Operation]:
        """Ops of the block after the loop along k, without the terminator."""
        ops = [op.operation for op in self.blocks.regions[0].blocks[0].operations][:-1]
        return ops[ops.index(self.k_loop.loop) + 1 :]

    def emit(self) -> None:
        """Emits the warp-specialised form and erases the original loop over blocks."""
        loop, number = self.k_loop.loop, self.blocks.regions[0].blocks[0].arguments[0]
        with ir.InsertionPoint(self.blocks), loop.location:
            tiles, bound = self._bounds()
            grid = forall(bound)
        with ir.InsertionPoint.at_block_terminator(grid.body), loop.location:
            mapping: Mapping = {number: grid.body.arguments[0]}
            if not self.persistent:
                _clone(self.prologue, mapping)
            order = allocate_order_barrier(self.consumer_groups, self.consumers) if self.consumer_groups > 1 else None
            ring = allocate_ring(self.stages, self.k_loop.operands, self.consumers, self.peers, streamed=self.streamed)
            consumers = self.consumers * self.consumer_groups
            target = target_around(self.k_loop.loop)
            registers = warpgroup_registers(consumers, self.producers, self.blocks_per_sm, target)
            regions = warp_roles((self.consumers, self.producers), registers, self.consumer_groups)
            if self.peers > 1:
                # A block may exit only after all peers' copies into its stages and arrivals at its barriers.
                cluster_barrier()
        for region, role in zip(regions, (self._consume, self._produce), strict=True):
            with ir.InsertionPoint(region), loop.location:
                if order is not None and role == self._consume:
                    self._ping_pong(ring, order, mapping, tiles, bound, region.arguments[0])
                elif self.persistent:
                    self._persistent_loop(ring, mapping, tiles, bound, role)
                else:
                    role(ring, dict(mapping), ring.first_state())
                vector.YieldOp([])
        erase(self.blocks)

    def _bounds(self) -> tuple[ir.Value, ir.Value]:
        """The number of tiles and the number of blocks; a persistent grid has at most the resident blocks.

        Both are multiples of the cluster size, so that the blocks of a cluster have adjacent tiles, and equally many.
        """
        static = ir.DenseI64ArrayAttr(self.blocks.attributes["staticUpperBound"])[0]
        if static != ir.ShapedType.get_dynamic_size():
            tiles, expr, symbols = arith.constant(ir.IndexType.get(), static), ir.AffineExpr.get_constant(static), []
        else:
            tiles = self.blocks.operands[0]
            producer = defining_op(tiles)
            assert producer is not None  # checked by can_be_persistent
            expr, symbols = ir.AffineMapAttr(producer.attributes["map"]).value.results[0], list(producer.operands)
        if not self.persistent:
            return tiles, tiles
        held = ir.AffineExpr.get_symbol(len(symbols))
        if self.peers > 1:
            held = ir.AffineExpr.get_floor_div(held, self.peers) * self.peers
        bounds = ir.AffineMap.get(0, len(symbols) + 1, [expr, held])
        return tiles, affine.AffineMinOp(bounds, [*symbols, resident_blocks(self.blocks_per_sm)]).result

    def _persistent_loop(
        self,
        ring: StageRing,
        mapping: Mapping,
        tiles: ir.Value,
        blocks: ir.Value,
        role: Callable[[StageRing, Mapping, PipelineState], PipelineState],
    ) -> None:
        """Emits a role's loop over the tiles of its block; the loop carries the role's pipeline state."""
        ((old, first),) = mapping.items()
        start = ring.first_state()
        loop = scf.ForOp(first, tiles, blocks, [start.stage, start.parity])
        with ir.InsertionPoint(loop.body):
            tile_mapping: Mapping = {old: loop.induction_variable}
            _clone(self.prologue, tile_mapping)
            state = role(ring, tile_mapping, PipelineState(*loop.inner_iter_args))
            scf.YieldOp([state.stage, state.parity])

    def _ping_pong(
        self,
        ring: StageRing,
        order: OrderBarrier,
        mapping: Mapping,
        tiles: ir.Value,
        blocks: ir.Value,
        consumer_group: ir.Value,
    ) -> None:
        """Emits a consumer group's loop over every `consumer_groups`-th tile of the block.

        The group skips the stages of the tiles in between, which belong to the other consumer groups.
        """
        ((old, first),) = mapping.items()
        start = ring.skip(ring.first_state(), self._steps_before(old, first, blocks, consumer_group))
        own_first = arith.addi(first, arith.muli(consumer_group, blocks))
        stride = arith.muli(blocks, arith.constant(ir.IndexType.get(), self.consumer_groups))
        loop = scf.ForOp(own_first, tiles, stride, [start.stage, start.parity, order.first_parity(consumer_group)])
        with ir.InsertionPoint(loop.body):
            stage, parity, awaited = loop.inner_iter_args
            tile_mapping: Mapping = {old: loop.induction_variable}
            _clone(self.prologue, tile_mapping)
            following = order.wait(consumer_group, awaited)
            state = self._consume(
                ring, tile_mapping, PipelineState(stage, parity), partial(order.pass_on, consumer_group)
            )
            state = ring.skip(state, self._steps_between(old, loop.induction_variable, blocks))
            scf.YieldOp([state.stage, state.parity, following])

    def _later(self, tile: ir.Value, blocks: ir.Value, number: int) -> ir.Value:
        """The tile of a block that many after another one."""
        return arith.addi(tile, arith.muli(blocks, arith.constant(ir.IndexType.get(), number))) if number else tile

    def _steps_of(self, old: ir.Value, tile: ir.Value) -> ir.Value:
        """The number of steps along k of a tile."""
        mapping: Mapping = {old: tile}
        _clone(self.prologue, mapping)
        return self._steps(mapping)

    def _steps_between(self, old: ir.Value, tile: ir.Value, blocks: ir.Value) -> ir.Value:
        """The steps of the block's tiles from one of a consumer group to the group's next one."""
        if self.known_steps is not None:
            return arith.constant(ir.IndexType.get(), self.known_steps * (self.consumer_groups - 1))
        others = [self._steps_of(old, self._later(tile, blocks, n)) for n in range(1, self.consumer_groups)]
        return reduce(arith.addi, others)

    def _steps_before(self, old: ir.Value, first: ir.Value, blocks: ir.Value, consumer_group: ir.Value) -> ir.Value:
        """The steps of the block's tiles in front of a consumer group's first one."""
        if self.known_steps is not None:
            return arith.muli(consumer_group, arith.constant(ir.IndexType.get(), self.known_steps))
        total = arith.constant(ir.IndexType.get(), 0)
        for number in range(self.consumer_groups - 1):
            count = arith.constant(ir.IndexType.get(), number)
            is_before = arith.cmpi(arith.CmpIPredicate.ult, count, consumer_group)
            steps = self._steps_of(old, self._later(first, blocks, number))
            nothing_ = arith.constant(ir.IndexType.get(), 0)
            total = arith.addi(total, arith.select(is_before, steps, nothing_))
        return total

    def _produce(self, ring: StageRing, mapping: Mapping, state: PipelineState) -> PipelineState:
        """Emits the producer: copies the operands stage by stage, with the index computations cloned into its loop."""
        k_loop = self.k_loop
        lower, _, step = (mapping.get(v, v) for v in list(k_loop.loop.operands)[:3])

        def fill(number: ir.Value, state: PipelineState, carried: list[ir.Value]) -> list[ir.Value]:
            tile_mapping = {
                **mapping,
                k_loop.loop.regions[0].blocks[0].arguments[0]: arith.addi(lower, arith.muli(number, step)),
            }
            _clone(k_loop.addressing, tile_mapping)
            places = [[tile_mapping.get(i, i) for i in operand.indices] for operand in k_loop.operands]
            ring.fill(state, k_loop.operands, places)
            return carried

        _, state = for_each_stage(ring, state, self._steps(mapping), [], fill)
        return state

    def _consume(
        self, ring: StageRing, mapping: Mapping, state: PipelineState, started: Emitter = nothing
    ) -> PipelineState:
        """Emits a consumer: multiplies the tile, waits for the last product, and runs the epilogue."""
        loop = self.k_loop.loop
        majors = [operand.major for operand in self.k_loop.operands]
        products = self.family.products(
            ring,
            self.k_loop.pairs,
            majors,
            self.promote,
            self.known_steps,
            releases_last=self.persistent,
            summation=partial(self._add_operands, ring, mapping),
        )
        initial = [mapping.get(start, start) for start in list(loop.operands)[3:]]
        sums, state = products.accumulate(initial, self._steps(mapping), state, started)
        mapping.update(zip(loop.results, sums, strict=True))
        _clone(self.epilogue, mapping)
        return state

    def _add_operands(
        self, ring: StageRing, outer: Mapping, state: PipelineState, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Clones the loop's sums of operands, which read a full stage."""
        if not self.k_loop.sums:
            return []
        body = self.k_loop.loop.regions[0].blocks[0]
        mapping: Mapping = outer | dict(zip(list(body.arguments)[-len(carried) :], carried, strict=True))
        sources = {operand.read.results[0]: number for number, operand in enumerate(self.k_loop.operands)}
        for op in self.k_loop.sums:
            if op.name != OPERAND_TILE:
                clone(op, mapping)
                continue
            buffer, tile = ring.buffers[sources[op.operands[0]]], op.results[0].type
            (mapping[op.results[0]],) = staged_tile(
                buffer, state.stage, [tile], first=first_of(op), transposed=is_transposed(op)
            )
        yielded = body.operations[len(body.operations) - 1].operands
        return [mapping[v] for v in list(yielded)[-len(carried) :]]

    def _steps(self, mapping: Mapping) -> ir.Value:
        """Number of steps of the loop along k, an index."""
        lower, upper, step = (mapping.get(v, v) for v in list(self.k_loop.loop.operands)[:3])
        return arith.ceildivsi(arith.subi(upper, lower), step)

    @cached_property
    def known_steps(self) -> int | None:
        """Number of steps of the loop along k if its bounds are constants; otherwise None."""
        lower, upper, step = map(integer_of, list(self.k_loop.loop.operands)[:3])
        if lower is None or upper is None or step is None:
            return None
        return -(-(upper - lower) // step)


def can_be_persistent(tile: PipelinedTile) -> str | None:
    """Why a persistent grid cannot loop over the tiles, or None if it can.

    The ops before the loop along k are repeated for each tile and role, so they must be index arithmetic.
    """
    if any(op.name.split(".")[0] not in ("arith", "affine") and op.name != "memref.dim" for op in tile.prologue):
        return "a block has ops other than index arithmetic before its loop along k"
    if list(tile.blocks.operands):
        producer = defining_op(tile.blocks.operands[0])
        if producer is None or producer.name != "affine.apply":
            return "the number of tiles is not an affine.apply of extents"
    return None


def _clone(ops: list[ir.Operation], mapping: Mapping) -> None:
    for op in ops:
        clone(op, mapping)

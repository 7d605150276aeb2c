"""Emits the consumers' side of a ring of stages: the products of a tile's steps along k, and their sum.

Float8 tensor cores accumulate with fewer bits than f32. With promotion, the accumulators are added to f32 registers
every few steps and start again from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.dialect.warpgroup_mma import warpgroup_mma
from mlirfuse.dialect.warpgroup_wait import warpgroup_wait
from mlirfuse.schedule.contractions.step_times import holds_warpgroup_sums
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.precision import TF32
from mlirfuse.tiling.contractions.family import Emitter, FamilyPipelining, StageProducts, Summation, no_sums, nothing
from mlirfuse.tiling.contractions.stage_ring import PipelineState, StageRing, for_each_stage
from mlirfuse.tiling.tiles import index

LONGEST_RUN = 4
"""Largest number of stages in a run, whose products overlap with the promotion of each stage's sum."""


@dataclass(frozen=True)
class WarpgroupProducts:
    """Emits the sums of products over the stages of a ring.

    Attributes:
        ring: the stages of all operands.
        pairs: the operands A and B of each product, by the numbers of their buffers in the ring.
        majors: the contiguous dimension of each operand in its stage, `k` or `mn`.
        promote: steps between promotions of the accumulators; 0 for no promotion.
        run: with `promote` 1, steps whose products overlap; a divisor of the number of steps.
        releases_last: whether a tile's last stage is released to the producer, as further tiles need.
        summation: emits sums of operands, between the start of a stage's products and the wait for them. Their tiles
            come behind those of the products wherever tiles are carried.
    """

    ring: StageRing
    pairs: Sequence[tuple[int, int]]
    majors: Sequence[str]
    promote: int
    run: int
    releases_last: bool
    summation: Summation = no_sums

    def accumulate(
        self, initial: Sequence[ir.Value], steps: ir.Value, start: PipelineState, started: Emitter = nothing
    ) -> tuple[list[ir.Value], PipelineState]:
        """Each sum of `initial` and the products of `steps` stages from `start` on, and the next pipeline state; behind
        the products' sums come those of operands.

        `started` is called to emit code right after the last product has been issued.
        """
        if self.promote == 0:
            return self._sum(initial, steps, start, started, releases_last=self.releases_last)
        sum_up = self._sum_with_overlap if self.promote == 1 else self._sum_by_chunks
        summed, state = sum_up(initial, steps, start)
        started()
        return summed, state

    def _sum(
        self,
        initial: Sequence[ir.Value],
        steps: ir.Value,
        start: PipelineState,
        started: Emitter = nothing,
        *,
        releases_last: bool,
    ) -> tuple[list[ir.Value], PipelineState]:
        """Accumulates in the tensor cores, with one stage in flight: a stage is released one step later."""

        def multiply(number: ir.Value, state: PipelineState, carried: list[ir.Value]) -> list[ir.Value]:
            products, sums = self._started(state, *self._apart(carried))
            summed = warpgroup_wait(products, len(products))
            # All products but those of the last stage are complete, so the previous stage may be refilled.
            not_first = arith.cmpi(arith.CmpIPredicate.ne, number, index(0))
            branch = scf.IfOp(not_first)
            with ir.InsertionPoint(branch.then_block):
                self.ring.release(self.ring.previous_stage(state))
                scf.YieldOp([])
            return [*summed, *sums]

        carried, state = for_each_stage(self.ring, start, steps, list(initial), multiply)
        started()
        products, sums = self._apart(carried)
        summed = warpgroup_wait(products, 0)
        if releases_last:
            self.ring.release(self.ring.previous_stage(state))
        return [*summed, *sums], state

    def _sum_by_chunks(
        self, initial: Sequence[ir.Value], steps: ir.Value, start: PipelineState
    ) -> tuple[list[ir.Value], PipelineState]:
        """Accumulates chunks of `promote` steps from zero, and adds each chunk's sums to f32 registers."""
        length = index(self.promote)
        chunks = scf.ForOp(index(0), steps, length, [*initial, start.stage, start.parity])
        with ir.InsertionPoint(chunks.body):
            *carried, stage, parity = chunks.inner_iter_args
            accumulators, sums = self._apart(carried)
            rest = arith.subi(steps, chunks.induction_variable)
            chunk, state = self._sum(
                [*_zeros(accumulators), *sums],
                arith.minsi(rest, length),
                PipelineState(stage, parity),
                releases_last=True,
            )
            products, sums = self._apart(chunk)
            scf.YieldOp([*_added(accumulators, products), *sums, state.stage, state.parity])
        *summed, stage, parity = chunks.results
        return summed, PipelineState(stage, parity)

    def _sum_with_overlap(
        self, initial: Sequence[ir.Value], steps: ir.Value, start: PipelineState
    ) -> tuple[list[ir.Value], PipelineState]:
        """Promotes each stage's products while the next stage's products are in flight, in runs of `run` stages.

        No product is in flight between runs: ptxas serialises all `wgmma`s (warning C7514) if accumulators are read in
        a loop while others are in flight over the loop's back edge.
        """
        zeros, count = _zeros(self._apart(initial)[0]), len(self.pairs)
        runs = scf.ForOp(index(0), steps, index(self.run), [*initial, start.stage, start.parity])
        with ir.InsertionPoint(runs.body):
            *both, stage, parity = runs.inner_iter_args
            carried, sums = self._apart(both)
            state = PipelineState(stage, parity)
            in_flight, sums = self._started(state, zeros, sums)
            for left in reversed(range(self.run)):
                following = self.ring.next_state(state)
                if left:
                    products, sums = self._started(following, zeros, sums)
                    in_flight += products
                waited = warpgroup_wait(in_flight, len(in_flight) - count)
                done, in_flight = waited[:count], waited[count:]
                self.ring.release(state.stage)
                carried, state = _added(carried, done), following
            scf.YieldOp([*carried, *sums, state.stage, state.parity])
        *summed, stage, parity = runs.results
        return summed, PipelineState(stage, parity)

    def _apart(self, carried: Sequence[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """What is carried for products, and for sums of operands."""
        count = len(self.pairs)
        return list(carried[:count]), list(carried[count:])

    def _started(
        self, state: PipelineState, accumulators: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """Issues a stage's products, and adds up its operands meanwhile: products in flight, and sums."""
        self.ring.await_full(state)
        added = self.summation(state, sums)
        return self._products(state, accumulators), added

    def _products(self, state: PipelineState, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Issues a stage's products, accumulated onto `sums`; the results are in flight until a wait."""
        buffers, majors = self.ring.buffers, self.majors
        return [
            warpgroup_mma(buffers[a], buffers[b], state.stage, [total], majors[a], majors[b])[0]
            for (a, b), total in zip(self.pairs, sums, strict=True)
        ]


def run_of(steps: int | None) -> int:
    """Number of stages in a run: the largest divisor of `steps` up to the limit; 1 if `steps` is unknown.

    A second loop for a remainder would spill registers. A single run of `LONGEST_RUN` stages, without a loop around
    the run, also spills and makes ptxas serialise the products, so the run is then shorter.
    """
    if steps is None:
        return 1
    longest = LONGEST_RUN - 1 if steps == LONGEST_RUN else LONGEST_RUN
    return next(run for run in range(longest, 0, -1) if steps % run == 0)


def _zeros(like: Sequence[ir.Value]) -> list[ir.Value]:
    zero = ir.FloatAttr.get_f32(0)
    return [arith.constant(v.type, ir.DenseElementsAttr.get_splat(v.type, zero)) for v in like]


def _added(left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
    return [arith.addf(a, b) for a, b in zip(left, right, strict=True)]


class WgmmaPipelining(FamilyPipelining):
    """Warpgroups multiply stages that lie in 128-byte swizzle atoms; accumulators are in registers."""

    def unsupported(self, element: ir.Type, major: str, precision: str) -> str | None:
        if isinstance(element, ir.F16Type | ir.BF16Type):
            return None
        is_float8 = isinstance(element, ir.Float8E4M3FNType | ir.Float8E5M2Type)
        is_int8 = element == ir.IntegerType.get_signless(8)
        if not (is_float8 or is_int8) and (str(element), precision) != ("f32", TF32):
            return f"wgmma does not multiply {element} as {precision}"
        return None if major == "k" else f"wgmma multiplies {element} only where k is contiguous"

    def holds_accumulators(self, layout: BlockedLayout) -> bool:
        return holds_warpgroup_sums(layout)

    def products(
        self,
        ring: StageRing,
        pairs: Sequence[tuple[int, int]],
        majors: Sequence[str],
        promote: int,
        steps: int | None,
        *,
        releases_last: bool,
        summation: Summation = no_sums,
    ) -> StageProducts:
        return WarpgroupProducts(ring, pairs, majors, promote, run_of(steps), releases_last, summation)


STRATEGY = WgmmaPipelining()

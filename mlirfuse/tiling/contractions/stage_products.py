"""Emits what consumers do with a ring of stages: the products of a tile's steps along k, summed up.

Tensor cores cut off what does not fit the accumulator. Where that shows, sums are promoted: every few steps they move
out of the tensor cores' accumulators, which then start from zero, into registers that hold sums in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.dialect.warpgroup_mma import warpgroup_mma
from mlirfuse.dialect.warpgroup_wait import warpgroup_wait
from mlirfuse.tiling.contractions.stage_ring import PipelineState, StageRing
from mlirfuse.tiling.tiles import index

LONGEST_RUN = 4
"""Stages whose products follow each other without a gap where each stage's sum is promoted. Longer
runs hardly hide more of the promotion."""


Emitter = Callable[[], None]


def nothing() -> None:
    """Emits nothing."""


def run_of(steps: int | None) -> int:
    """Stages of a run: as many as divide the steps; 1 where these are not known. Another loop for the rest spills.

    So does a single run of the most stages, around which there is no loop: ptxas then makes its products wait, too.
    """
    if steps is None:
        return 1
    longest = LONGEST_RUN - 1 if steps == LONGEST_RUN else LONGEST_RUN
    return next(run for run in range(longest, 0, -1) if steps % run == 0)


@dataclass(frozen=True)
class StageProducts:
    """The products of a ring's stages.

    Attributes:
        ring: the stages of both operands.
        majors: how each operand lies in its stage, `k` or `mn`.
        promote: steps after which sums are promoted; 0 is never.
        run: where that is every step, those whose products follow each other without a gap; a divisor of all steps.
        releases_last: whether a tile's last stage is released, for another tile.
    """

    ring: StageRing
    majors: tuple[str, str]
    promote: int
    run: int
    releases_last: bool

    def total(
        self, initial: ir.Value, steps: ir.Value, start: PipelineState, started: Emitter = nothing
    ) -> tuple[ir.Value, PipelineState]:
        """The sum of `initial` and the products of so many stages from `start` on, and the next state.

        `started` emits what is done as soon as the last products have been started.
        """
        if self.promote == 0:
            return self._sum(initial, steps, start, started, releases_last=self.releases_last)
        sum_up = self._sum_apart if self.promote == 1 else self._sum_in_chunks
        total, state = sum_up(initial, steps, start)
        started()
        return total, state

    def _sum(
        self,
        initial: ir.Value,
        steps: ir.Value,
        start: PipelineState,
        started: Emitter = nothing,
        *,
        releases_last: bool,
    ) -> tuple[ir.Value, PipelineState]:
        """Accumulates: a stage's products are started before those of the stage before are known to be done."""

        def multiply(number: ir.Value, state: PipelineState, carried: list[ir.Value]) -> list[ir.Value]:
            (total,) = warpgroup_wait([self._products(state, carried[0])], 1)
            # All but this multiplication are done: the stage before may be filled again.
            not_first = arith.cmpi(arith.CmpIPredicate.ne, number, index(0))
            branch = scf.IfOp(not_first)
            with ir.InsertionPoint(branch.then_block):
                self.ring.release(self.ring.previous_stage(state))
                scf.YieldOp([])
            return [total]

        sums, state = for_each_stage(self.ring, start, steps, [initial], multiply)
        started()
        (total,) = warpgroup_wait(sums, 0)
        if releases_last:
            self.ring.release(self.ring.previous_stage(state))
        return total, state

    def _sum_in_chunks(
        self, initial: ir.Value, steps: ir.Value, start: PipelineState
    ) -> tuple[ir.Value, PipelineState]:
        """Accumulates `promote` steps from zero, and adds their sum to what is carried."""
        length = index(self.promote)
        chunks = scf.ForOp(index(0), steps, length, [initial, start.stage, start.parity])
        with ir.InsertionPoint(chunks.body):
            carried, stage, parity = chunks.inner_iter_args
            rest = arith.subi(steps, chunks.induction_variable)
            products, state = self._sum(
                _zeros(initial), arith.minsi(rest, length), PipelineState(stage, parity), releases_last=True
            )
            scf.YieldOp([arith.addf(carried, products), state.stage, state.parity])
        total, stage, parity = chunks.results
        return total, PipelineState(stage, parity)

    def _sum_apart(self, initial: ir.Value, steps: ir.Value, start: PipelineState) -> tuple[ir.Value, PipelineState]:
        """Adds each stage's products to what is carried while the next stage's are under way, in runs of stages.

        Nothing is under way from run to run: ptxas gives up on accumulators that are read at one end of a loop while
        others are under way around it (C7514), and makes all products wait for each other.
        """
        zeros = _zeros(initial)
        runs = scf.ForOp(index(0), steps, index(self.run), [initial, start.stage, start.parity])
        with ir.InsertionPoint(runs.body):
            carried, stage, parity = runs.inner_iter_args
            state = PipelineState(stage, parity)
            under_way = [self._products(state, zeros)]
            for left in reversed(range(self.run)):
                following = self.ring.next_state(state)
                if left:
                    under_way.append(self._products(following, zeros))
                done, *under_way = warpgroup_wait(under_way, len(under_way) - 1)
                self.ring.release(state.stage)
                carried, state = arith.addf(carried, done), following
            scf.YieldOp([carried, state.stage, state.parity])
        total, stage, parity = runs.results
        return total, PipelineState(stage, parity)

    def _products(self, state: PipelineState, sums: ir.Value) -> ir.Value:
        """A stage's products, under way, added to sums."""
        self.ring.await_full(state)
        a, b = self.ring.buffers
        (total,) = warpgroup_mma(a, b, state.stage, [sums], *self.majors)
        return total


def for_each_stage(
    ring: StageRing,
    start: PipelineState,
    steps: ir.Value,
    initial: list[ir.Value],
    body: Callable[[ir.Value, PipelineState, list[ir.Value]], list[ir.Value]],
) -> tuple[list[ir.Value], PipelineState]:
    """A loop over steps that takes turns at the ring's stages; returns what it carries besides, and the next state."""
    loop = scf.ForOp(index(0), steps, index(1), [*initial, start.stage, start.parity])
    with ir.InsertionPoint(loop.body):
        *carried, stage, parity = loop.inner_iter_args
        state = PipelineState(stage, parity)
        results = body(loop.induction_variable, state, carried)
        following = ring.next_state(state)
        scf.YieldOp([*results, following.stage, following.parity])
    *totals, stage, parity = loop.results
    return totals, PipelineState(stage, parity)


def _zeros(like: ir.Value) -> ir.Value:
    return arith.constant(like.type, ir.DenseElementsAttr.get_splat(like.type, ir.FloatAttr.get_f32(0)))

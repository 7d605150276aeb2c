"""Compensated sums of periods of tiles, so that one partial of many tiles loses little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class CompensatedSums:
    """What a loop over tiles carries beside the accumulators of some of its reductions: a sum, and its compensation.

    A sum lacks a little after each addition, the compensation, which is taken from the next term (Kahan, Further
    remarks on reducing truncation errors, 1965), so that the length of the loop adds nothing to the error of a period.

    Attributes:
        period: tiles after which the accumulators are added to the sums, and restart.
        numbers: of the reductions, those that have such a sum.
    """

    period: int
    numbers: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many values the loop carries for them."""
        return 2 * len(self.numbers)

    def start(self, neutral: Sequence[ir.Value]) -> list[ir.Value]:
        """The values before the first tile: of all reductions the neutral elements."""
        return [value for n in self.numbers for value in (neutral[n], neutral[n])]

    def after_tile(
        self, accumulators: Sequence[ir.Value], carried: Sequence[ir.Value], neutral: Sequence[ir.Value], done: ir.Value
    ) -> list[ir.Value]:
        """The accumulators, and what is carried beside them, after a tile: the last of a period or not.

        Args:
            accumulators: of all reductions.
            carried: the sums and compensations before.
            neutral: what accumulators restart from.
            done: the number of tiles, an index.
        """
        state = [*accumulators, *carried]
        if not self.numbers:
            return state
        rest = arith.RemUIOp(done, index(self.period)).result
        is_last = arith.CmpIOp(arith.CmpIPredicate.eq, rest, index(0)).result
        branch = scf.IfOp(is_last, [value.type for value in state], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            restarted, added = list(accumulators), list[ir.Value]()
            for n, (before, lost) in zip(self.numbers, self._pairs(carried), strict=True):
                restarted[n] = neutral[n]
                term = arith.SubFOp(accumulators[n], lost).result
                more = arith.AddFOp(before, term).result
                added += [more, arith.SubFOp(arith.SubFOp(more, before).result, term).result]
            scf.YieldOp([*restarted, *added])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(state)
        return list(branch.results)

    def end(self, accumulators: Sequence[ir.Value], carried: Sequence[ir.Value]) -> list[ir.Value]:
        """All tiles in the accumulators: those of the last period, and the sums of the others."""
        found = list(accumulators)
        for n, (before, lost) in zip(self.numbers, self._pairs(carried), strict=True):
            found[n] = arith.AddFOp(before, arith.SubFOp(accumulators[n], lost).result).result
        return found

    def _pairs(self, carried: Sequence[ir.Value]) -> list[tuple[ir.Value, ir.Value]]:
        """Each sum with its compensation."""
        return [(carried[2 * place], carried[2 * place + 1]) for place in range(len(self.numbers))]

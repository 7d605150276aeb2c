"""The interface through which pipelined k-loops ask an asynchronous instruction family for its products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from mlir import ir

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.strategies import strategy_of
from mlirfuse.tiling.contractions.stage_ring import PipelineState, StageRing

PACKAGE = "mlirfuse.tiling.contractions.families"

Emitter = Callable[[], None]


def nothing() -> None:
    """Emits nothing."""


Summation = Callable[[PipelineState, Sequence[ir.Value]], list[ir.Value]]
"""Adds the elements of a full stage to tiles of partial sums, and returns these."""


def no_sums(state: PipelineState, carried: Sequence[ir.Value]) -> list[ir.Value]:
    """Adds nothing."""
    return list(carried)


class StageProducts(Protocol):
    """Emits the products of the stages of a ring, for the consumers of a tile."""

    def accumulate(
        self, initial: Sequence[ir.Value], steps: ir.Value, start: PipelineState, started: Emitter = nothing
    ) -> tuple[list[ir.Value], PipelineState]:
        """Each sum of `initial` and the products of `steps` stages from `start` on, and the next pipeline state; behind
        the products' sums come those of operands, as in `initial`.

        A sum is a tile in the schedule's layout. Every stage is awaited before its products, and released behind them.
        `started` is called to emit code right after the last product has been issued.
        """


class FamilyPipelining(ABC):
    """What differs between asynchronous families in `fuse-pipeline-contraction`."""

    @abstractmethod
    def unsupported(self, element: ir.Type, major: str, precision: str) -> str | None:
        """Why the instruction cannot multiply an operand that a tensor map copies to shared memory, or None.

        Args:
            element: type of its elements.
            major: the operand's contiguous dimension, `k` or `mn`.
            precision: how precisely operands are multiplied (`mlirfuse/support/precision.py`).
        """

    @abstractmethod
    def holds_accumulators(self, layout: BlockedLayout) -> bool:
        """Whether a tile in the layout can be the sum of products."""

    @abstractmethod
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
        """The products of a tile.

        Args:
            ring: the stages of all operands.
            pairs: the operands A and B of each product, by the numbers of their buffers in the ring.
            majors: the contiguous dimension of each operand in its stage, `k` or `mn`.
            promote: steps between promotions of the accumulators; 0 for no promotion.
            steps: steps along k of a tile; None where only run time knows.
            releases_last: whether a tile's last stage is released to the producer, as further tiles need.
            summation: emits sums of operands, while a stage is full.
        """


def family_pipelining(family: str) -> FamilyPipelining | None:
    """The strategy of an instruction family; None where its loops along k are not pipelined."""
    found: FamilyPipelining | None = strategy_of(PACKAGE, family)
    return found

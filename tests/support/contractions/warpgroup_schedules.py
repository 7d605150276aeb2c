"""Schedules of products by wgmma, for tests."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.schedule import Schedule


def warpgroup_schedule(
    m: int,
    n: int,
    *,
    k: int = 64,
    stages: int = 3,
    batch: int = 0,
    persistent: bool = False,
    cluster: int = 1,
    blocks_per_sm: int = 1,
    promote: int = 0,
    consumer_groups: int = 1,
    split: int = 1,
) -> Schedule:
    """A tile of m x n accumulators, in the layout of m64nNk16, by one to three warpgroups.

    Args:
        m: rows, a multiple of 64; of 128 for two warpgroups, and 192 for three.
        n: columns, a multiple of 8.
        k: elements of k in a stage.
        stages: of the ring.
        batch: number of batch dimensions.
        persistent: whether the grid loops overthe tiles.
        cluster: blocks that share operand A's tiles.
        blocks_per_sm: blocks of an SM; more than one have one warpgroup each.
        promote: steps along k after which sums leave the tensor cores' accumulators.
        consumer_groups: of one warpgroup each, which alternate over the tiles of a persistent grid.
        split: blocks that share k, of which the last combines all partials.
    """
    together = blocks_per_sm == consumer_groups == 1
    warpgroups = 3 if m == 192 and together else 2 if m % 128 == 0 and together else 1
    ones = (1,) * batch
    layout = BlockedLayout(
        vector=(*ones, 1, 2),
        lanes=(*ones, 8, 4),
        warps=(*ones, 4 * warpgroups, 1),
        repeats=(*ones, m // (64 * warpgroups), n // 8),
        blocks=(*ones, 1, 1),
        inner=(*ones, 2, 1),
    )
    return Schedule(
        (*ones, m, n),
        layout,
        blocks_per_sm=blocks_per_sm if blocks_per_sm > 1 else 0,
        contraction=ContractionSchedule(
            k,
            "wgmma",
            stages,
            split,
            persistent=persistent or consumer_groups > 1,
            cluster=cluster,
            promote=promote,
            consumer_groups=consumer_groups,
        ),
    )


def cluster_schedule(m: int, n: int, split: int) -> Schedule:
    """Slices of k that a cluster reduces; neighbouring threads take neighbouring columns of the rows they add up."""
    schedule = warpgroup_schedule(m, n)
    assert schedule.contraction is not None
    schedule = with_slices(replace(schedule, contraction=replace(schedule.contraction, split=split)))
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, reduction="cluster"))

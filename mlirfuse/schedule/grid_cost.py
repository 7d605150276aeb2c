"""What slows a walk of a persistent grid down; the weights are fitted to what `grid_heuristics` has measured."""

from __future__ import annotations

from math import log2, prod

from mlirfuse.schedule.grid_drafts import (
    TILE_ELEMENTS,
    Draft,
    are_apart,
    in_turn,
    in_work,
    padding,
    row_elements,
    waits,
)
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.problem import Problem, WalkProblem

FRAGMENTS = 3
"""Fragments a thread holds of a tile: loops over fewer have too much overhead, over more too few threads."""

CLUSTER_COST = 0.08
"""What doubling the blocks that share a row costs: a longer exchange, and multiprocessors that no cluster fits on (an
H200 has 132, of which clusters of 4 take 120)."""

PARTS_COST = 0.006
"""What twice the blocks of a multiprocessor cost for every byte of an element's totals: each has a part, for which the
finish waits. (H200, bf16, 1024 rows: LayerNorm backward of 4096 columns 11.6 us by 264 blocks, 10.2 by 132; RMSNorm
10.0 and 9.8.)"""

TURN_WORK, TURN_WORK_COST, TURN_ALONE = 9216, 0.12, 0.04
"""Elements in work on a multiprocessor that serve it best where rows come in turn; what twice or half as many cost; and
what a block alone costs there, beside which nobody works while it waits."""

TURN_PADDING, TURN_FRAGMENTS, TURN_ROWS = 0.15, 0.01, 0.004
"""What threads that idle cost where rows come in turn; half or twice the fragments of each row; and every row beyond
two."""

SCHEDULERS = 4
"""Schedulers of a multiprocessor."""

IN_FLIGHT = 48 * 1024
"""Bytes of tiles that a multiprocessor has asked for at once, where no warp waits for another.

A row's own numbers, loaded a step ahead into registers, are waited for at the end of that step: an L2 miss in each,
64 % of a warp's time. Copied with their tile they cost nothing, but then all is under way that may be, and memory
serves too much at once slower. Measured on an H200, RMSNorm and LayerNorm backward in bfloat16, share of `torch.add`:

| columns | registers, 3 stages | copied, 36 KiB | 48 KiB | 60 to 66 KiB | 96 KiB and more |
|---|---|---|---|---|---|
| 384 | 0.917, 0.879 | 0.913, 0.888 | 0.942, 0.956 | 0.915 | 0.914, 0.903 |
| 768 | 0.955, 0.874 | 0.896, 0.851 | 0.951, 0.941 | 0.886 | 0.883, 0.859 |
| 1024 | 0.946, 0.915 | | 0.944, 0.922 | 0.879, 0.863 | 0.884, 0.830 |

Where warps meet in a step, as in rows of 2048 columns and more, 3 stages and registers are faster: 0.98 and 0.96 at
4096, against 0.94 with 48 KiB, and 0.89 and 0.86 with 96. Six warps took 1 to 3 % longer than four or eight.
"""


def walk_cost(problem: Problem, walk: WalkProblem, draft: Draft, stages: int) -> float:
    """What slows a walk down; the weights are fitted to the measurements that this module names."""
    layout = draft.layout
    if in_turn(walk, layout) > 1:
        return _turns_cost(problem, walk, draft) + CLUSTER_COST * log2(layout.cluster)
    abreast = prod(layout.warps[d] for d in walk.dims)
    padded = padding(problem, walk, layout)
    fragments = layout.elements_per_thread / max(layout.vector)
    return (
        0.35 * padded
        + (0.03 if padded > 1 else 0.0)
        + (_flight_cost(problem, draft, stages) if are_apart(walk, layout, draft.order) else _work_cost(draft))
        + 0.10 * abs(log2(fragments / FRAGMENTS))
        + (0.03 * log2(abreast) if waits(walk, layout) else 0.0)  # rows that share a block wait for each other
        + (0.08 if draft.order == "depth" else 0.0)
        + (0.10 if stages == 1 else 0.0)
        + (0.03 if draft.columns == "shared" else 0.0)
        + CLUSTER_COST * log2(layout.cluster)
    )


def parts_cost(walk: WalkProblem, draft: Draft) -> float:
    """What a block's parts cost: among rows in turn, and where these are compared with the best of the others, among
    whom it has not been measured.
    """
    return PARTS_COST * walk.total_bytes * log2(draft.blocks) if waits(walk, draft.layout) else 0.0


def _turns_cost(problem: Problem, walk: WalkProblem, draft: Draft) -> float:
    """What too little or too much work costs where a block's warps meet once for several rows.

    H200, bfloat16, a row or rows side by side at a time and rows in turn, us (docs/architecture.md has more):

    | columns | RMSNorm, 1024 rows | LayerNorm, 1024 rows | RMSNorm, 134 million elements | LayerNorm |
    |---|---|---|---|---|
    | 1536 (RMSNorm two, LayerNorm three; two blocks) | 8.1, 5.5 | 9.4, 7.1 | 203, 207 | 216, 194 |
    | 1600 (two; three blocks) | 6.8, 7.6 | 8.8, 9.4 | 207, 202 | 225, 201 |
    | 2048 (two; two blocks) | 7.5, 6.6 | 10.1, 7.6 | 191, 192 | 195, 197 |
    | 3072 (three) | 8.4, 8.3 | 9.8, 9.6 | 199, 189 | 207, 202 |
    | 4096 (two) | 10.1, 9.9 | 11.6, 10.2 | 188, 190 | 192, 194 |
    | 5140 (two) | 12.6, 12.3 | 14.8, 14.3 | 219, 190 | 226, 201 |

    Three rows of 1600 columns by two blocks of seven warps took 230 and 246, nobody knows why.
    """
    rows, padded = in_turn(walk, draft.layout), padding(problem, walk, draft.layout)
    fragments = draft.layout.elements_per_thread / max(draft.layout.vector) / rows
    work = rows * row_elements(problem) * draft.blocks / draft.layout.cluster
    return (
        0.35
        + TURN_PADDING * (padded - 1)
        + (0.03 if padded > 1 else 0.0)
        + TURN_WORK_COST * abs(log2(work / TURN_WORK))
        + (TURN_ALONE if draft.blocks == 1 else 0.0)
        + TURN_FRAGMENTS * abs(log2(fragments / FRAGMENTS))
        + TURN_ROWS * (rows - 2)
        + parts_cost(walk, draft)
    )


def _work_cost(draft: Draft) -> float:
    """What too little or too much work costs where warps wait for each other in every step."""
    return 0.10 * abs(log2(in_work(draft) / TILE_ELEMENTS)) + 0.02 * abs(log2(draft.blocks) - 1)


def _flight_cost(problem: Problem, draft: Draft, stages: int) -> float:
    """What too few or too many bytes under way cost where nobody waits.

    It chooses between numbers of rows of one kind, and weighs little beside what says how a row is best held.
    """
    # The number of a warp in its block says which scheduler issues it.
    uneven = draft.layout.threads % (WARP * SCHEDULERS) > 0
    in_flight = in_work(draft) * max(problem.read_bytes, 1) * stages
    return 0.03 * abs(log2(in_flight / IN_FLIGHT)) + 0.03 * uneven + 0.05 * _work_cost(draft)

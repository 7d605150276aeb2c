"""Choosing how a persistent grid walks rows that it reduces: a pure function of (problem, target).

Measured on an H200 with RMSNorm and LayerNorm backward in bfloat16, 384 to 8192 columns: what decides is how many
bytes a multiprocessor has under way while it computes. Asynchronous copies into shared memory keep them so without
taking registers; some 8 K elements of a tile on a multiprocessor, two or three tiles deep, reach 0.87 to 0.98 of
`torch.add` of the same size. Where a row is of several warps, these have two to four in turn, to meet less often
(`grid_cost.py`). Tiles that are held by few threads, many elements each, or by many threads in one block,
are slower. Wider rows are spread over clusters, so that a block has as much of one: 0.94 and 0.91 at 16384 columns,
where one block with the whole row reached 0.86 and 0.84, and 0.87 and 0.84 at 65536.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from mlirfuse.schedule.finish_heuristics import PERIOD, choose_finish
from mlirfuse.schedule.grid_cost import IN_FLIGHT, parts_cost, walk_cost
from mlirfuse.schedule.grid_drafts import Draft, are_apart, drafts, in_turn, in_work, padding, row_elements
from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.problem import Problem, WalkProblem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.schedule.walk_memory import RESERVED, walk_bytes
from mlirfuse.target import Target

SQUEEZED = 0.75
"""What ptxas may have to do with of the registers that are estimated, where nothing else is left."""

CHUNK_ELEMENTS, SHARED_TOTALS, SHARED_ROW = 12 * 1024, 4, 512
"""Elements of a small chunk of the end that blocks share; bytes of an element's totals, and elements of a row, up to
which they share it.

More chunks leave more parts for the finish, and larger ones end less together. Measured on an H200, RMSNorm backward of
576000 x 384 in bfloat16: 0.968 of `torch.add` with a twentieth of the tiles in chunks of 64 and then 32 rows and 16
reads at once in the finish (which takes few rows 0.5 us longer), 0.965 with 5 reads and 32 rows only; with a tenth in
chunks of 128 and 64 0.967, of 64 and 32 0.961; 0.936 to 0.938 without. LayerNorm, whose parts are
twice as large, takes 0.7 to 1.1 % longer so. RMSNorm of 131072 x 768 took from 1 % less to 0.6 % longer, of 65536 x
1024 2 to 3 % longer, as an end of 5 us is one chunk a block; both of 32768 x 2048 0.2 to 0.4 % longer."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

FEW_TILES = 16
"""Tiles of a block up to which one is loading, where a tile is a row of one block, or rows in turn. Measured on an
H200 with RMSNorm and LayerNorm backward of 4096 and 8192 columns, two stages against three: 0.4 to 1.4 us less at 4
tiles a block, as less work is left when the last data arrive; 1 % more in RMSNorm at 124 tiles. Where several rows lie
side by side it also helps where there are few, but asking costs 0.3 % of each step of 768 and 1024 columns."""


@lru_cache(maxsize=256)  # whether there is one is asked before it is taken
def grid_schedule(problem: Problem, target: Target, squeeze: float = 1.0) -> Schedule | None:
    """The best schedule for a problem with a `walk`; None where no cluster holds a row with its totals.

    Args:
        problem: the problem.
        target: the architecture.
        squeeze: the share of the registers that are estimated that ptxas may have to do with.
    """
    assert problem.walk is not None
    walk = problem.walk
    candidates = list(drafts(problem, walk, target, squeeze))
    turns = [draft for draft in candidates if in_turn(walk, draft.layout) > 1]
    others = [draft for draft in candidates if in_turn(walk, draft.layout) == 1]
    found = [best for few in (others, turns) if (best := _cheapest(problem, walk, few, target)) is not None]
    # Rows in turn are compared with the best of the others.
    return min(found, key=lambda best: best[0])[1] if found else None


def _cheapest(
    problem: Problem, walk: WalkProblem, candidates: Sequence[Draft], target: Target
) -> tuple[float, Schedule] | None:
    """The cheapest of some drafts, completed, and what it costs with its parts; None where none is legal."""
    bounds = [walk_cost(problem, walk, draft, _most_stages(problem, walk, draft)) for draft in candidates]
    best: tuple[float, int, Schedule] | None = None
    # To choose a finish and to count shared memory takes longer than to say what a draft costs with all its stages. So
    # drafts are completed from the cheapest on, until what is left cannot be cheaper; of equals the first is taken.
    for bound, position in sorted(zip(bounds, range(len(candidates)), strict=True)):
        if best is not None and bound > best[0]:
            break
        schedule = _complete(problem, walk, candidates[position], target)
        if schedule is None or schedule.walk is None:
            continue
        cost = walk_cost(problem, walk, candidates[position], schedule.walk.stages)
        if best is None or (cost, position) < best[:2]:
            best = cost, position, schedule
    if best is None:
        return None
    chosen = candidates[best[1]]
    return best[0] + (parts_cost(walk, chosen) if in_turn(walk, chosen.layout) == 1 else 0.0), best[2]


def too_wide(problem: Problem, target: Target) -> str:
    """What `grid_schedule` finds no schedule for."""
    return f"no cluster of {target.max_cluster} holds a row of {row_elements(problem)} elements with its totals"


def _most_stages(problem: Problem, walk: WalkProblem, draft: Draft) -> int:
    """Tiles that a block has under way; as many as nobody has to wait for, where its warps never meet."""
    if problem.vector == 1:  # asynchronous copies move 4 bytes or more
        return 1
    if not are_apart(walk, draft.layout, draft.order):
        return STAGES
    return min(STAGES, max(2, round(IN_FLIGHT / in_work(draft) / max(problem.read_bytes, 1))))


def _is_streamed(problem: Problem, walk: WalkProblem, draft: Draft) -> bool:
    """Whether steps ask how their tile is to be copied: where rows fill their threads, and no rows of several warps lie
    side by side.

    On an H200, backward passes of RMSNorm and LayerNorm in bfloat16 that read 17 MB or less took 0.3 to 4 % less time
    with tiles that leave the L2 first, from 2048 to 65536 columns. To ask cost walks over more nothing at 4096, 8192
    and 16384 to 65536 columns, but 0.8 % at 1600 columns, 0.1 to 0.8 % at 2048, and up to 1.9 % at 5140.
    """
    layout = draft.layout
    is_apart = layout.is_alone(walk.dims) or are_apart(walk, layout, draft.order)
    return is_apart and padding(problem, walk, layout) == 1


def _chunk(problem: Problem, walk: WalkProblem, draft: Draft) -> int:
    """Tiles of a small chunk of the end that blocks share; 0 where they share none."""
    is_small = walk.total_bytes <= SHARED_TOTALS and row_elements(problem) <= SHARED_ROW
    if walk.wide or not is_small or not are_apart(walk, draft.layout, draft.order):
        return 0
    return max(1, CHUNK_ELEMENTS // prod(draft.layout.extents))


def _complete(problem: Problem, walk: WalkProblem, draft: Draft, target: Target) -> Schedule | None:
    """A draft with a finish and as many stages as shared memory has room for; None if it is illegal."""
    layout, blocks = draft.layout, draft.blocks
    tile = tuple(
        (extent if d not in walk.dims else layout.extents[d]) or layout.extents[d]
        for d, extent in enumerate(problem.extents)
    )
    finish_tile, finish_layout, finish_reads = choose_finish(problem, walk, layout, blocks, target)
    shared = min(target.shared_per_block, target.shared_per_sm // blocks - RESERVED)
    period = PERIOD if walk.wide else 0
    chunk = _chunk(problem, walk, draft)
    none_abreast = layout.cluster == 1 and layout.is_alone(walk.dims) and draft.order == "breadth"
    for stages in range(_most_stages(problem, walk, draft), 0, -1):
        plan = GridWalk(
            walk.dims,
            "slices",
            finish_tile,
            finish_layout,
            stages,
            draft.columns,
            finish_reads,
            period,
            # With order `depth` this has not been measured. A block that takes chunks does not know its last tile.
            peeled=draft.order == "breadth" and walk.inner and not period and not chunk,
            few_tiles=FEW_TILES if none_abreast and stages > 2 else 0,
            row_values="shared" if are_apart(walk, layout, draft.order) and stages > 1 else "registers",
            streamed=stages > 1 and _is_streamed(problem, walk, draft),
            chunk=chunk,
        )
        schedule = Schedule(tile, layout, order=draft.order, blocks_per_sm=blocks, walk=plan)
        if walk_bytes(problem, layout, plan) <= shared:
            legal = check_schedule(schedule, problem.extents, problem.reduced, target) is None
            return schedule if legal else None
    return None

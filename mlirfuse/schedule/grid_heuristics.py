"""Choosing how a persistent grid walks rows that it reduces: a pure function of (problem, target).

Measured on an H200 with RMSNorm and LayerNorm backward in bfloat16, 384 to 8192 columns: what decides is how many
bytes a multiprocessor has under way while it computes. Asynchronous copies into shared memory keep them so without
taking registers; some 8 K elements of a tile on a multiprocessor, two or three tiles deep, reach 0.87 to 0.97 of
`torch.add` of the same size. Tiles that are held by few threads, many elements each, or by many threads in one block,
are slower. Wider rows are spread over clusters, so that a block has as much of one: 0.94 and 0.91 at 16384 columns,
where one block with the whole row reached 0.86 and 0.84, and 0.87 and 0.84 at 65536.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2, prod

from mlirfuse.schedule.finish_heuristics import PERIOD, choose_finish
from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.problem import Problem, WalkProblem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.schedule.spread import Spread
from mlirfuse.schedule.walk_memory import RESERVED, walk_bytes
from mlirfuse.target import Target

TILE_ELEMENTS = 8192
"""Elements of the tiles that are in work on one multiprocessor."""

FRAGMENTS = 3
"""Fragments a thread holds of a tile: loops over fewer have too much overhead, over more too few threads."""

BREADTH_BASE, BREADTH_ELEMENT = 16, 2.1
"""Registers of a thread that works breadth-first: addresses and row values, and what each register of an element's
totals, packed reads and columns takes with what is computed from it (ptxas 13.0, sm_90a, no spills)."""

DEPTH_BASE, DEPTH_ELEMENT, DEPTH_READ = 32, 0.25, 1 / 8
"""Registers of a thread that works depth-first: besides an element's totals and columns, something for each element and
for each byte that is read of it."""

PADDED_BASE, BREADTH_PADDED, DEPTH_PADDED = 12, 0.75, 1.5
"""Registers for the masks of a row that does not fill its threads, and for each element in either order."""

CLUSTER_REGISTERS = {"breadth": 4, "depth": 12}
"""Registers for the addresses of other blocks' shared memory and mbarriers, by order."""

CLUSTER_COST = 0.08
"""What doubling the blocks that share a row costs: a longer exchange, and multiprocessors that no cluster fits on (an
H200 has 132, of which clusters of 4 take 120)."""

MOST_ELEMENTS = 40
"""Elements that a thread may hold: beyond it these estimates are no longer to be trusted."""

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

SCHEDULERS = WARPS_ALLOCATED = 4
"""Schedulers of a multiprocessor, and the warps that registers are given to at once: one to each."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

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

FEW_TILES = 16
"""Tiles of a block up to which one is loading, where a tile is a row of one block, whole in registers. Measured on an
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
    drafts = list(_drafts(problem, walk, target, squeeze))
    bounds = [_cost(problem, walk, draft, _most_stages(problem, walk, draft)) for draft in drafts]
    best: tuple[float, int, Schedule] | None = None
    # To choose a finish and to count shared memory takes longer than to say what a draft costs with all its stages. So
    # drafts are completed from the cheapest on, until what is left cannot be cheaper; of equals the first is taken.
    for bound, position in sorted(zip(bounds, range(len(drafts)), strict=True)):
        if best is not None and bound > best[0]:
            break
        schedule = _complete(problem, walk, drafts[position], target)
        if schedule is None or schedule.walk is None:
            continue
        cost = _cost(problem, walk, drafts[position], schedule.walk.stages)
        if best is None or (cost, position) < best[:2]:
            best = cost, position, schedule
    return None if best is None else best[2]


def too_wide(problem: Problem, target: Target) -> str:
    """What `grid_schedule` finds no schedule for."""
    return f"no cluster of {target.max_cluster} holds a row of {_row_elements(problem)} elements with its totals"


@dataclass(frozen=True)
class _Draft:
    """A schedule whose finish and stages are still open.

    Attributes:
        layout: how a tile is spread over threads.
        order: in which order a thread works.
        columns: where it keeps what all tiles share.
        blocks: resident blocks of a multiprocessor.
    """

    layout: BlockedLayout
    order: str
    columns: str
    blocks: int


def _drafts(problem: Problem, walk: WalkProblem, target: Target, squeeze: float) -> Iterator[_Draft]:
    """Every split of a row over lanes, warps and blocks of a cluster, and every number of rows abreast, that fits."""
    for layout in dict.fromkeys(_layouts(problem, walk, target)):
        for order, columns in WAYS:
            if columns == "shared" and not walk.column_bytes:
                continue
            registers = round(squeeze * _registers(problem, walk, layout, order, columns))
            most = _resident_blocks(layout, registers, target)
            # Where nobody waits for another, more than memory can serve is under way sooner than too little.
            fewest = 1 if _are_apart(walk, layout, order) else most
            for blocks in range(most, max(0, fewest - 1), -1):
                yield _Draft(layout, order, columns, blocks)


WAYS = (("breadth", "registers"), ("depth", "registers"), ("depth", "shared"))
"""In which order a thread works, and where it keeps what all tiles share: the first needs the most registers."""

MOST_ROWS = 16
"""Warps side by side in a tile, at most."""


def _layouts(problem: Problem, walk: WalkProblem, target: Target) -> Iterator[BlockedLayout]:
    """Every way to spread a row over lanes, warps and blocks of a cluster, with every number of others side by side."""
    most_warps = target.max_threads_per_block // WARP
    abreast = walk.dims[-1]
    for doublings in range(target.max_cluster.bit_length()):
        for lanes in (WARP, 16, 8) if doublings == 0 else (WARP,):
            for warps in range(1, (most_warps if lanes == WARP else 1) + 1):
                fill = _spread_row(problem, walk, lanes, warps, 1 << doublings)
                if fill is None:
                    continue
                layout = fill.layout()
                for rows in range(1, min(MOST_ROWS, most_warps // warps, fill.left(abreast)) + 1):
                    counts = (rows * n if d == abreast else n for d, n in enumerate(layout.warps))
                    yield replace(layout, warps=tuple(counts))


def _spread_row(problem: Problem, walk: WalkProblem, lanes: int, warps: int, cluster: int) -> Spread | None:
    """A row over so many lanes of `warps` warps of `cluster` blocks; None if some would idle."""
    fill = Spread(problem.extents, problem.vector_dim, problem.vector)
    inner = [d for d in range(problem.rank) if d not in walk.dims]
    inner.sort(key=lambda d: (d != problem.vector_dim, -d))
    for dim in inner:
        fill.add_lanes(dim, lanes)
    fill.rest_of_lanes(walk.dims[-1])
    for dim in inner:
        fill.add_blocks(dim, cluster)
    for dim in inner:
        fill.add_warps(dim, warps)
    if prod(fill.blocks) != cluster or prod(fill.warps) != warps:
        return None
    for dim in inner:
        fill.rest_in_repeats(dim)
    return fill


def _resident_blocks(layout: BlockedLayout, registers: int, target: Target) -> int:
    """How many blocks of so many registers a thread are to share a multiprocessor; 0 if not even one fits."""
    held = layout.elements_per_thread
    threads = -(-layout.threads // (WARP * WARPS_ALLOCATED)) * WARP * WARPS_ALLOCATED
    if registers > target.max_registers_per_thread or held > MOST_ELEMENTS:
        return 0
    return min(
        target.registers_per_sm // (-(-registers // 8) * 8 * threads),
        target.threads_per_sm // layout.threads,
        max(1, TILE_ELEMENTS // (held * layout.threads)),
    )


def _most_stages(problem: Problem, walk: WalkProblem, draft: _Draft) -> int:
    """Tiles that a block has under way; as many as nobody has to wait for, where its warps never meet."""
    if problem.vector == 1:  # asynchronous copies move 4 bytes or more
        return 1
    if not _are_apart(walk, draft.layout, draft.order):
        return STAGES
    return min(STAGES, max(2, round(IN_FLIGHT / _in_work(draft) / max(problem.read_bytes, 1))))


def _are_apart(walk: WalkProblem, layout: BlockedLayout, order: str) -> bool:
    """Whether rows are reduced, each by one warp or by less, so that the warps of a block never meet in a step.

    With order `depth`, which takes more instructions, what two warps of a scheduler do has not been measured.
    """
    return walk.inner and order == "breadth" and layout.threads == WARP * prod(layout.warps[d] for d in walk.dims)


def _is_streamed(problem: Problem, walk: WalkProblem, draft: _Draft) -> bool:
    """Whether steps ask how their tile is to be copied: where rows fill their threads, and no rows of several warps lie
    side by side.

    On an H200, backward passes of RMSNorm and LayerNorm in bfloat16 that read 17 MB or less took 0.3 to 4 % less time
    with tiles that leave the L2 first, from 2048 to 65536 columns. To ask cost walks over more nothing at 4096, 8192
    and 16384 to 65536 columns, but 0.8 % at 1600 columns, 0.1 to 0.8 % at 2048, and up to 1.9 % at 5140.
    """
    layout = draft.layout
    rows = prod(layout.extents[d] for d in walk.dims)
    fills = rows * _row_elements(problem) == prod(layout.extents)
    return fills and (rows == 1 or _are_apart(walk, layout, draft.order))


def _chunk(problem: Problem, walk: WalkProblem, draft: _Draft) -> int:
    """Tiles of a small chunk of the end that blocks share; 0 where they share none."""
    is_small = walk.total_bytes <= SHARED_TOTALS and _row_elements(problem) <= SHARED_ROW
    if walk.wide or not is_small or not _are_apart(walk, draft.layout, draft.order):
        return 0
    return max(1, CHUNK_ELEMENTS // prod(draft.layout.extents))


def _in_work(draft: _Draft) -> int:
    """Elements of the tiles that are in work on one multiprocessor."""
    return draft.layout.elements_per_thread * draft.layout.threads * draft.blocks


def _complete(problem: Problem, walk: WalkProblem, draft: _Draft, target: Target) -> Schedule | None:
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
    is_row = layout.cluster == prod(layout.extents[d] for d in walk.dims) == 1 and draft.order == "breadth"
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
            few_tiles=FEW_TILES if is_row and stages > 2 else 0,
            row_values="shared" if _are_apart(walk, layout, draft.order) and stages > 1 else "registers",
            streamed=stages > 1 and _is_streamed(problem, walk, draft),
            chunk=chunk,
        )
        schedule = Schedule(tile, layout, order=draft.order, blocks_per_sm=blocks, walk=plan)
        if walk_bytes(problem, layout, plan) <= shared:
            legal = check_schedule(schedule, problem.extents, problem.reduced, target) is None
            return schedule if legal else None
    return None


def _cost(problem: Problem, walk: WalkProblem, draft: _Draft, stages: int) -> float:
    """What slows a walk down; the weights are fitted to the measurements that this module names."""
    layout = draft.layout
    rows = prod(layout.extents[d] for d in walk.dims)
    abreast = prod(layout.warps[d] for d in walk.dims)
    padding = prod(layout.extents) / (rows * _row_elements(problem))
    fragments = layout.elements_per_thread / max(layout.vector)
    # Rows that share a block wait for each other where several warps hold one.
    waits = walk.inner and layout.threads > WARP * abreast
    return (
        0.35 * padding
        + (0.03 if padding > 1 else 0.0)
        + (_flight_cost(problem, draft, stages) if _are_apart(walk, layout, draft.order) else _work_cost(draft))
        + 0.10 * abs(log2(fragments / FRAGMENTS))
        + (0.03 * log2(abreast) if waits else 0.0)
        + (0.08 if draft.order == "depth" else 0.0)
        + (0.10 if stages == 1 else 0.0)
        + (0.03 if draft.columns == "shared" else 0.0)
        + CLUSTER_COST * log2(layout.cluster)
    )


def _work_cost(draft: _Draft) -> float:
    """What too little or too much work costs where warps wait for each other in every step."""
    return 0.10 * abs(log2(_in_work(draft) / TILE_ELEMENTS)) + 0.02 * abs(log2(draft.blocks) - 1)


def _flight_cost(problem: Problem, draft: _Draft, stages: int) -> float:
    """What too few or too many bytes under way cost where nobody waits.

    It chooses between numbers of rows of one kind, and weighs little beside what says how a row is best held.
    """
    # The number of a warp in its block says which scheduler issues it.
    uneven = draft.layout.threads % (WARP * SCHEDULERS) > 0
    in_flight = _in_work(draft) * max(problem.read_bytes, 1) * stages
    return 0.03 * abs(log2(in_flight / IN_FLIGHT)) + 0.03 * uneven + 0.05 * _work_cost(draft)


def _registers(problem: Problem, walk: WalkProblem, layout: BlockedLayout, order: str, columns: str) -> int:
    """Estimated registers of a thread."""
    in_registers = walk.column_bytes if columns == "registers" else 0
    carried = (walk.total_bytes + in_registers) / 4
    if order == "breadth":
        base, each = BREADTH_BASE, BREADTH_ELEMENT * (carried + problem.read_bytes / 4)
    else:
        base, each = DEPTH_BASE, carried + DEPTH_ELEMENT + DEPTH_READ * problem.read_bytes
        if walk.wide:  # a part that leaves in the loop is there beside the next one's start
            each += walk.total_bytes / 4
    if any(layout.extents[d] != extent for d, extent in enumerate(problem.extents) if d not in walk.dims):
        base, each = base + PADDED_BASE, each + (BREADTH_PADDED if order == "breadth" else DEPTH_PADDED)
    if layout.cluster > 1:
        base += CLUSTER_REGISTERS[order]
    registers = base + each * layout.elements_per_thread
    return round(registers)


def _row_elements(problem: Problem) -> int:
    assert problem.walk is not None
    return prod(extent or 1 for d, extent in enumerate(problem.extents) if d not in problem.walk.dims)

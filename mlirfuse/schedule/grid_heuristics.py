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

WARPS_ALLOCATED = 4
"""Registers are given to so many warps at once: one to each of a multiprocessor's schedulers."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""


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
    bounds = [_cost(problem, walk, draft, _most_stages(problem)) for draft in drafts]
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
            blocks = _resident_blocks(layout, registers, target)
            if blocks:
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


def _most_stages(problem: Problem) -> int:
    return STAGES if problem.vector > 1 else 1  # asynchronous copies move 4 bytes or more


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
    is_row = layout.cluster == prod(layout.extents[d] for d in walk.dims) == 1 and draft.order == "breadth"
    for stages in range(_most_stages(problem), 0, -1):
        plan = GridWalk(
            walk.dims,
            "slices",
            finish_tile,
            finish_layout,
            stages,
            draft.columns,
            finish_reads,
            period,
            # H200, RMSNorm and LayerNorm backward of 4096 and 8192 columns: 0.2 to 0.4 us less a call. Parts of several
            # rows would be exchanged between warps twice, in a block with a tile and in one without.
            peeled=is_row and walk.inner and not period,
            few_tiles=FEW_TILES if is_row and stages > 2 else 0,
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
    in_work = layout.elements_per_thread * layout.threads * draft.blocks
    fragments = layout.elements_per_thread / max(layout.vector)
    # Rows that share a block wait for each other where several warps hold one.
    waits = walk.inner and layout.threads > WARP * abreast
    return (
        0.35 * padding
        + (0.03 if padding > 1 else 0.0)
        + 0.10 * abs(log2(in_work / TILE_ELEMENTS))
        + 0.10 * abs(log2(fragments / FRAGMENTS))
        + 0.02 * abs(log2(draft.blocks) - 1)
        + (0.03 * log2(abreast) if waits else 0.0)
        + (0.08 if draft.order == "depth" else 0.0)
        + (0.10 if stages == 1 else 0.0)
        + (0.03 if draft.columns == "shared" else 0.0)
        + CLUSTER_COST * log2(layout.cluster)
    )


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

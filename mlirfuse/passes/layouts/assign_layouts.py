"""`fuse-assign-layouts`: decides which thread holds which element of each tile vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect import OPS
from mlirfuse.dialect.attributes import LAYOUT, SECOND_STAGE
from mlirfuse.errors import ScheduleError
from mlirfuse.passes.layouts.reduction_points import reduced_dims
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.schedule import Schedule, schedule_of
from mlirfuse.support.dataclass_attributes import to_attribute
from mlirfuse.support.rewriting import nested
from mlirfuse.tiling.contractions.k_loop import feeds_contraction

ANCHORS = {name for name, definition in OPS.items() if definition.needs_layout} | {
    "vector.contract",
    "vector.multi_reduction",
    "vector.transfer_read",
    "vector.transfer_write",
}
"""Ops where a layout is a decision: they touch memory or other threads. All others work in their operands' layout."""


MASKS = {"vector.constant_mask", "vector.create_mask"}
"""Ops without an operand whose layout they could take, where a kernel has several."""


@dataclass(frozen=True)
class FuseAssignLayouts(Pass):
    """Puts the schedule's layout on every op of a tile program at which data moves between threads or memory.

    Requires tile programs with `fuse.schedule`. In the loop of a grid reduction's second stage (`fuse.second_stage`),
    it is the persistent loop's `second_stage_layout`. The layout must cover every tile that it is put on; elements
    beyond the tile are padding. Elementwise ops carry no layout, as they work in the layout of their operands, nor do
    the operands of a contraction, of which each thread loads the elements that its accumulators need. Ops with a layout
    keep it; a loop around tiles of several layouts is marked with that of the tiles that it carries.

    What each thread reduces of its own (`fuse.thread_reduce`), and what is made of that, has a layout with one element
    for each thread along the reduced dimensions.

    The partial results of a block of a persistent loop are stored in a reduce-scatter layout where several warps have
    reduced them: each warp keeps and stores a distinct slice of the result. In the tile's layout every warp would have
    the whole result, and one warp would store it.

    ```mlir
    %0 = vector.transfer_read %x[%row, %c0], %pad : memref<?x4096xf16>, vector<1x4096xf16>
    ```
    becomes
    ```mlir
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = {lanes = array<i64: 1, 32>, ...}} : ...
    ```
    """

    name: ClassVar[str] = "fuse-assign-layouts"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                remarks.declined(self, "not a tile program", kernel)
                continue
            schedule = schedule_of(kernel)
            ops = nested(kernel)
            anchors = [op for op in ops if op.name in ANCHORS and not feeds_contraction(op)]
            for loop in ops:
                if SECOND_STAGE in loop.attributes and (second_stage := _second_stage_layout(schedule)) is not None:
                    _assign(second_stage, [op for op in nested(loop) if op.name in ANCHORS])
            # Not in depth-first order, where values that are loaded ahead would then be computed at once.
            if schedule.persistent_loop is not None and schedule.order == "breadth":
                _reduce_scatter(schedule.layout, [op for op in anchors if LAYOUT not in op.attributes])
            own = [op for op in ops if op.name == "fuse.thread_reduce"]
            loops = {op.parent.operation for op in own}
            anchors += [op for op in ops if op.name in MASKS and op.parent.operation in loops]
            for op in own:
                _assign(schedule.layout.of_threads(reduced_dims(op)), [op, *_readers(op)])
            rest = [op for op in anchors if LAYOUT not in op.attributes]
            _assign(schedule.layout, rest)
            _mark_mixed_regions(ops, rest)
            remarks.applied(self, f"{schedule.layout.threads} threads, {len(anchors)} ops", kernel)


def _second_stage_layout(schedule: Schedule) -> BlockedLayout | None:
    """The layout of the tiles that combine partial results in the second stage of a reduction."""
    if schedule.persistent_loop is not None:
        return schedule.persistent_loop.second_stage_layout
    return None if schedule.contraction is None else schedule.contraction.second_stage_layout


def _readers(reduction: ir.Operation) -> list[ir.Operation]:
    """The anchors that read a reduction's result, which loops carry, and what these make of it."""
    found: dict[ir.Operation, None] = {}
    waiting, seen = list(reduction.results), set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.owner.operation
            if op.name in ANCHORS:
                found[op] = None
            if op.name == "scf.yield":
                waiting.append(op.parent.results[use.operand_number])
            elif op.name == "scf.for":  # its first operands are the bounds and the step
                waiting += [op.results[use.operand_number - 3]]
                waiting += [op.regions[0].blocks[0].arguments[use.operand_number - 2]]
            elif not list(op.regions):
                waiting += list(op.results)
    return [op for op in found if LAYOUT not in op.attributes and op != reduction]


def _reduce_scatter(layout: BlockedLayout, anchors: Sequence[ir.Operation]) -> None:
    """Puts the reduce-scatter layout on stores of reductions: each warp keeps a distinct slice of the result.

    In the tile's layout every warp would read and add up the partials of all columns, in several times as much code.
    """
    for op in anchors:
        if op.name != "vector.multi_reduction":
            continue
        users = {use.owner.operation for use in op.results[0].uses}
        scattered = layout.apart(reduced_dims(op))
        if scattered is not None and all(user.name == "vector.transfer_write" for user in users):
            for user in users:
                user.attributes[LAYOUT] = to_attribute(scattered)


def _mark_mixed_regions(ops: Sequence[ir.Operation], anchors: Sequence[ir.Operation]) -> None:
    """Marks loops and branches around tiles of several layouts with the layout of their operands and results."""
    for around in ops:
        if around.name not in ("scf.for", "scf.while", "scf.if"):
            continue
        inside = [op for op in nested(around) if LAYOUT in op.attributes]
        if len({op.attributes[LAYOUT] for op in inside}) > 1:
            carried = [op for op in inside if op.name == "fuse.thread_reduce"]
            around.attributes[LAYOUT] = [*carried, *(op for op in inside if op in anchors)][0].attributes[LAYOUT]


def _assign(layout: BlockedLayout, anchors: Sequence[ir.Operation]) -> None:
    attribute = to_attribute(layout)
    for op in anchors:
        tile = _tile_extents(op)
        if len(tile) == layout.rank and (problem := layout.check(_held(tile, layout))):
            raise ScheduleError(problem, where=op)
        op.attributes[LAYOUT] = attribute


def _held(tile: tuple[int, ...], layout: BlockedLayout) -> tuple[int, ...]:
    """The extents that a layout must cover for a tile: its own, or those of the layout where the tile is uniform."""
    return tuple(
        covered - layout.slack(d) if extent == 1 else extent
        for d, (covered, extent) in enumerate(zip(layout.extents, tile, strict=True))
    )


def _tile_extents(op: ir.Operation) -> tuple[int, ...]:
    """Extents of the widest vector that an op reads or makes; of what has accumulators, those of these."""
    if op.name == "fuse.copy_fragments":
        return tuple(ir.DenseI64ArrayAttr(op.attributes["tile"]))
    if op.name in ("vector.contract", "fuse.thread_reduce"):
        return tuple(ir.VectorType(op.results[0].type).shape)
    types = [v.type for v in [*op.operands, *op.results] if isinstance(v.type, ir.VectorType)]
    return max((tuple(t.shape) for t in types), key=lambda extents: len(extents))

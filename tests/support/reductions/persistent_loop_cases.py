"""Helpers of tests of grid reductions: changed persistent loops, and bugs that the interpreter must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from mlir import ir
from mlir.dialects import arith

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.mutation import mutants, plant, site
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.grid.second_stage import choose_second_stage, staged
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.rewriting import nested
from mlirfuse.target import target_of
from tests.support.forms import fastest_of
from tests.support.harnesses.compiling import module_at
from tests.support.reductions.backward import Backward

COLUMNS, SMS = 64, 3
SIDE_BY_SIDE_COLUMNS, SIDE_BY_SIDE = 2048, {"warps": (2, 2), "repeats": (1, 4)}
"""Two rows of two warps each; the heuristics are unrolled over them, over four warps."""
ROW_COLUMNS, WIDEST_ROW, ROW_VECTORS = 4096, 8192, 2
"""Columns from which on `looping` has one row a tile, and of a block at most; vectors of a thread of such rows."""
ORDERS: tuple[dict[str, Any], ...] = ({}, {"order": "reversed"}, {"order": "random", "seed": 7})


def _is_loop_of_one_block(schedule: Schedule) -> bool:
    return schedule.persistent_loop is not None and schedule.layout.cluster == 1


def looping(
    backward: Backward,
    stage: str,
    dtype: Any,
    columns: int = COLUMNS,
    layout: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    **changes: Any,
) -> ir.Module:
    """The function, with the fastest loop of blocks without clusters for a grid barrier but for some fields of its
    layout and of its persistent loop.

    The last tile is not peeled unless `changes` say so: of few rows blocks have one tile, and nothing would be seen of
    bugs in the loop.
    """
    specs = backward.specs(columns, dtype)
    module = mf.fuse(backward.fn, target="sm_90a", grid_reduction="grid_sync").lower(*specs).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-graph-pipeline"))
    (kernel,) = kernels(module.operation)
    if columns >= ROW_COLUMNS and not layout:
        schedule = row_loop(kernel)
    else:
        given = problem_of(kernel, *kernel_space(kernel))
        schedule = fastest_of(given, _is_loop_of_one_block, grid_reduction="grid_sync")
    assert schedule is not None
    assert schedule.persistent_loop is not None
    held = replace(schedule.layout, **dict[str, Any](layout))
    if layout:
        changes = _second_stage(kernel, held, schedule.blocks_per_sm) | changes
    persistent_loop = replace(schedule.persistent_loop, **{"peeled": False} | changes)
    tile = tuple(held.extents[d] if d in persistent_loop.dims else n for d, n in enumerate(schedule.tile))
    return module_at(
        stage, backward.fn, specs, replace(schedule, tile=tile, layout=held, persistent_loop=persistent_loop)
    )


def row_loop(kernel: ir.Operation) -> Schedule:
    """A loop over tiles of one row each, of which two blocks share an SM, over a cluster where rows are wide."""
    problem = problem_of(kernel, *kernel_space(kernel))
    loop, columns = problem.persistent_loop, problem.extents[1]
    assert loop is not None
    assert columns is not None
    cluster = -(-columns // WIDEST_ROW)
    warps = -(-columns // (cluster * ROW_VECTORS * problem.vector * WARP))
    layout = BlockedLayout((1, problem.vector), (1, WARP), (1, warps), (1, ROW_VECTORS), (1, cluster))
    schedule = staged(problem, loop, layout, "breadth", "registers", 2, target_of("sm_90a"))
    assert schedule is not None
    return schedule


def _second_stage(kernel: ir.Operation, layout: BlockedLayout, blocks_per_sm: int) -> dict[str, Any]:
    """The fields that depend on how many threads a block has."""
    problem = problem_of(kernel, *kernel_space(kernel))
    assert problem.persistent_loop is not None
    names = ("second_stage_tile", "second_stage_layout", "second_stage_reads")
    target = target_of("sm_90a")
    fields = choose_second_stage(problem, problem.persistent_loop, layout, blocks_per_sm, target)
    return dict(zip(names, fields, strict=True))


def check_mutants(
    module: ir.Module, backward: Backward, cases: Sequence[Any], kinds: Collection[str], harmless: Sequence[str] = ()
) -> None:
    """Asserts that there are mutants of all kinds, each of which some inputs in some order of blocks show.

    `harmless` are the kinds of those that may survive.
    """

    def notices(mutated: ir.Operation) -> bool:
        try:
            for inputs in cases:
                for order in ORDERS:
                    backward.check(interpreter.run(mutated, backward.name, inputs, sms=SMS, **order), inputs)
        except (InterpreterError, AssertionError):
            return True
        return False

    tried = [mutant for mutant in mutants(module) if mutant.kind in kinds]
    survivors = [m for m in tried if not notices(plant(module, m))]
    assert {m.kind for m in tried} == set(kinds)
    assert Counter(m.kind for m in survivors) <= Counter(harmless), [f"{m}: {site(module, m)}" for m in survivors]


def arrivals(module: ir.Module) -> list[ir.Operation]:
    """The arrivals at semaphores, in program order."""
    return [op for op in nested(module.operation) if op.name == "fuse.semaphore_arrive"]


def drop_arrival(arrival: ir.Operation) -> None:
    """Removes an arrival; uses of its result get 0."""
    with arrival.context, ir.InsertionPoint(arrival), arrival.location:
        nothing = arith.ConstantOp(arrival.results[0].type, 0).result
    arrival.results[0].replace_all_uses_with(nothing)
    arrival.erase()

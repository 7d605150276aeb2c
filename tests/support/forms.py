"""Schedules of a form: what a test is about stays the same where another form is predicted to be faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlirfuse as mf
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.machine import machine_of
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import target_of

SPLIT = "fuse-split-reductions,"


def problem(fn: Callable[..., Any], specs: Sequence[Any]) -> Problem:
    """The problem of a function's only kernel without contractions, whose reductions get no kernel of their own."""
    module = mf.fuse(fn, target="sm_90a").lower(*specs).module
    text = pipeline.named("fuse-graph-pipeline")
    assert SPLIT in text
    with module.context:
        run_pipeline(module, text.replace(SPLIT, ""))
        (kernel,) = [op.operation for op in module.body.operations if SCHEDULE in op.attributes]
        return problem_of(kernel, *kernel_space(kernel))


def fastest_of(
    given: Problem,
    has_form: Callable[[mf.Schedule], bool],
    *,
    grid_reduction: str = "auto",
    target: str = "sm_90a",
) -> mf.Schedule | None:
    """Of the schedules that are proposed for a problem, the one of a form that is predicted to be fastest; None if none
    is of that form.

    Args:
        given: the problem.
        has_form: whether a schedule has the form.
        grid_reduction: how a persistent loop's partials are combined.
        target: the architecture.
    """
    machine, sized = machine_of(target_of(target)), with_extents(given)
    found = [p.schedule for p in proposals(given, target_of(target), grid_reduction) if has_form(p.schedule)]
    return min(found, key=lambda schedule: predict(schedule, sized, machine).microseconds, default=None)


def fastest(
    fn: Callable[..., Any], specs: Sequence[Any], has_form: Callable[[mf.Schedule], bool], **options: str
) -> mf.Schedule:
    """The same of the only kernel of a function, which has a schedule of that form; `options` as in `fastest_of`."""
    schedule = fastest_of(problem(fn, specs), has_form, **options)
    assert schedule is not None
    return schedule


def loop_of(schedule: mf.Schedule) -> PersistentLoop:
    """The persistent loop of a schedule that has one."""
    assert schedule.persistent_loop is not None
    return schedule.persistent_loop


def copies_tiles(schedule: mf.Schedule) -> bool:
    """Whether a persistent loop's tiles are copied to shared memory ahead."""
    return schedule.persistent_loop is not None and schedule.persistent_loop.stages > 1

"""`mlirfuse tune FILE.py:FUNCTION`: measures the schedules with the best estimates, and keeps the fastest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
from mlir import ir
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import mlirfuse as mf
from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.builder.spec import TensorSpec
from mlirfuse.errors import ArgumentError, MlirFuseError
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.runtime import tuning
from mlirfuse.runtime.device import cuda
from mlirfuse.schedule.contractions.cost import contraction_seconds
from mlirfuse.schedule.contractions.heuristics import candidates, choose_contraction
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.records import Record, records_path, store
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target, target_of
from mlirfuse.tools.commands.specs import static_shape
from mlirfuse.tools.commands.user_function import add_arguments, load_function, specs_for

KEPT = 24
SHOWN = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_arguments(parser)
    parser.add_argument(
        "--keep", type=int, default=KEPT, help=f"schedules to measure, best estimates first; {KEPT} by default"
    )


@dataclass(frozen=True)
class Trial:
    """A schedule that was measured, and the time of the whole function with it."""

    schedule: Schedule
    microseconds: float


def run(options: argparse.Namespace) -> int:
    """Tunes every contraction of a function; returns 1 where none of a kernel's schedules ran."""
    if options.keep < 1:
        raise ArgumentError(f"{options.keep} leaves no schedule to measure", where="--keep", hint="keep 1 or more")
    module, name, function = load_function(options.function)
    specs = specs_for(options, module, name)
    shapes = [static_shape(spec, f"argument {i} of {name}") for i, spec in enumerate(specs)]
    target = cuda.device_target(0) if options.target is None else target_of(options.target)
    fused = function if isinstance(function, mf.Fused) else mf.fuse(function)
    fused = fused.with_options(target=target, dynamic_products=False)
    if options.fusion is not None:
        fused = fused.with_options(fusion=options.fusion)
    found = problems(fused, specs, target)
    console = Console()
    if not found:
        console.print(f"{name} has no contraction; only schedules of contractions can be tuned")
        return 0
    sets = tuning.random_arguments(shapes, [spec.dtype.numpy for spec in specs if isinstance(spec, TensorSpec)])
    failed = False
    for kernel, problem in found.items():
        survivors = survivors_of(problem, target, options.keep)
        trials, failures = measure_all(fused, kernel, survivors, sets)
        report(console, kernel, problem, target, trials, failures)
        if trials:
            best = min(trials, key=lambda trial: trial.microseconds)
            store(problem, target, Record(best.schedule, best.microseconds))
        failed |= not trials
    console.print(f"kept in {records_path() or 'no file: records are off'}")
    return int(failed)


def problems(fused: mf.Fused, specs: Sequence[Any], target: Target) -> dict[str, ContractionProblem]:
    """The contractions of a function, by kernel."""
    lowered = fused.lower(*specs)
    found = {}
    with lowered.module.context:
        graph = ir.Module.parse(str(lowered.module))
        run_pipeline(graph, lowered.pipeline("fuse-graph-pipeline"))
        for kernel in kernels(graph.operation):
            space, structures = kernel_space(kernel)
            contraction = contraction_in(space, structures)
            if contraction is not None:
                found[symbol(kernel)] = contraction_problem(kernel, space, contraction)
    return found


def survivors_of(problem: ContractionProblem, target: Target, keep: int) -> list[Schedule]:
    """The schedules with the best estimates, each once; raises `ArgumentError` for less than one."""
    if keep < 1:
        raise ArgumentError(f"--keep {keep} leaves no schedule to measure")
    distinct = dict.fromkeys(candidates(problem, target))
    return nsmallest(keep, distinct, key=lambda schedule: contraction_seconds(schedule, problem, target))


def measure_all(
    fused: mf.Fused, kernel: str, schedules: Sequence[Schedule], sets: Sequence[Sequence[np.ndarray]]
) -> tuple[list[Trial], list[str]]:
    """Measures the function with each schedule of one kernel; returns the trials, and why other schedules could not be
    measured.
    """
    trials, failures = [], []
    with Progress(transient=True) as progress:
        for schedule in progress.track(schedules, description=kernel):
            try:
                scheduled = fused.with_options(schedule={kernel: schedule})
                trials.append(Trial(schedule, tuning.measure(scheduled, sets)))
            except MlirFuseError as error:
                failures.append(f"{schedule.tile}: {error}".partition("\n")[0])
    return trials, failures


def report(
    console: Console,
    kernel: str,
    problem: ContractionProblem,
    target: Target,
    trials: Sequence[Trial],
    failures: Sequence[str],
) -> None:
    """Prints the fastest schedules, and the cost model's choice."""
    table = Table(title=f"{kernel}: {problem.m} x {problem.n} x {problem.k} {problem.element.name}")
    for column in ("tile", "by", "stages", "split", "us", "estimate"):
        table.add_column(column, justify="right")
    chosen = choose_contraction(problem, target)
    ranked = sorted(trials, key=lambda trial: trial.microseconds)
    for trial in [*ranked[:SHOWN], *(t for t in ranked[SHOWN:] if t.schedule == chosen)]:
        contraction = trial.schedule.contraction
        assert contraction is not None
        split = f"{contraction.split} {contraction.reduction}" if contraction.split > 1 else "1"
        estimate = contraction_seconds(trial.schedule, problem, target) * 1e6
        mark = " (the cost model's)" if trial.schedule == chosen else ""
        tile = "x".join(map(str, trial.schedule.tile)) + (" transposed" if contraction.swapped else "")
        row = [tile + mark, contraction.instruction, str(contraction.stages), split]
        table.add_row(*row, f"{trial.microseconds:.1f}", f"{estimate:.1f}")
    console.print(table)
    for failure in failures:
        console.print(f"not measured: {failure}", highlight=False)

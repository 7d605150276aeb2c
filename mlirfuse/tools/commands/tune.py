"""`mlirfuse tune FILE.py:FUNCTION`: measures schedules in the order of prediction, and keeps the fastest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

import mlirfuse as mf
from mlirfuse.api.argument_specs import gpu_specs
from mlirfuse.api.tuning import tune
from mlirfuse.builder.spec import ScalarSpec
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo, ScalarInfo
from mlirfuse.runtime.arrays.foreign import contiguous_strides
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.search import Trial, Tuned
from mlirfuse.schedule.choice.records import AnyProblem, records_path
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from mlirfuse.tools.commands.specs import static_shape
from mlirfuse.tools.commands.user_function import Spec, add_arguments, load_function, specs_for

SECONDS = 60.0
SHOWN = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_arguments(parser)
    what = f"time for all kernels together, after which no schedule is begun; {SECONDS:g} by default"
    parser.add_argument("--seconds", type=float, default=SECONDS, help=what)


def run(options: argparse.Namespace) -> int:
    """Tunes every kernel of a function as a call with such arrays compiles it; leading extents stay dynamic there."""
    if not options.seconds > 0:
        raise ArgumentError(f"{options.seconds:g} leaves no time to measure", where="--seconds")
    module, name, function = load_function(options.function)
    specs = specs_for(options, module, name)
    arguments = [_argument(spec, f"argument {i} of {name}") for i, spec in enumerate(specs)]
    found = cuda.device_target(0)
    target = found if options.target is None else target_of(options.target).with_sms(found.sms)
    fused = function if isinstance(function, mf.Fused) else mf.fuse(function)
    fused = fused.with_options(target=target, tune=False)
    if options.fusion is not None:
        fused = fused.with_options(fusion=options.fusion)
    compiled = fused._compile(lambda extents: gpu_specs(arguments, extents), target, cuda.device_name(0))
    console = Console()
    tuned = tune(fused, compiled.lowered, arguments, options.seconds, console, again=True)
    for each in tuned:
        report(console, each)
    if tuned:
        console.print(f"kept in {records_path() or 'no file: records are off'}")
    else:
        console.print(f"{name} has no kernel whose schedule is not given")
    return 0


def _argument(spec: Spec, what: str) -> Argument:
    """What a call has as an argument of a spec, which must be static: an array without an address, or a number."""
    if isinstance(spec, ScalarSpec):
        return ScalarInfo(spec.kind)
    shape = static_shape(spec, what)
    return ArrayInfo(0, shape, contiguous_strides(shape, 1), spec.dtype, 0, "cupy")


def report(console: Console, tuned: Tuned) -> None:
    """Prints the fastest schedules of a problem, the one that the function had before, and failures."""
    table = Table(title=f"{tuned.kernel}: {_title(tuned.problem)}, {len(tuned.trials)} of {tuned.candidates} measured")
    for column in ("tile", "", "us", "predicted"):
        table.add_column(column, justify="left" if not column else "right")
    for trial in _shown(tuned.trials):
        before = trial.predicted is None
        tile = "x".join(map(str, trial.schedule.tile)) + (" (chosen before)" if before else "")
        predicted = "" if trial.predicted is None else f"{trial.predicted:.1f}"
        table.add_row(tile, _text(trial.schedule), f"{trial.microseconds:.1f}", predicted)
    console.print(table)
    for failure in tuned.failures[:SHOWN]:
        console.print(f"not measured: {failure}", highlight=False)
    if len(tuned.failures) > SHOWN:
        console.print(f"not measured: {len(tuned.failures) - SHOWN} others")


def _shown(trials: Sequence[Trial]) -> list[Trial]:
    """The fastest, and the schedule that the function had before."""
    order = sorted(trials, key=lambda trial: trial.microseconds)
    return [*order[:SHOWN], *(trial for trial in order[SHOWN:] if trial.predicted is None)]


def _title(problem: AnyProblem) -> str:
    if isinstance(problem, ContractionProblem):
        return f"{problem.m or '?'} x {problem.n or '?'} x {problem.k} {problem.element.name}"
    return "x".join(str(extent or "?") for extent in problem.extents)


def _text(schedule: Schedule) -> str:
    """The fields in which the schedules of one problem differ most."""
    contraction, loop, layout = schedule.contraction, schedule.persistent_loop, schedule.layout
    if contraction is not None:
        split = f", {contraction.split_text}" if contraction.split_text else ""
        swapped = ", transposed" if contraction.swapped else ""
        return f"{contraction.instruction}, {contraction.stages} stages{split}{swapped}"
    family = f"persistent, {loop.grid_reduction}" if loop is not None else schedule.persistence
    cluster = f", cluster {layout.cluster}" if layout.cluster > 1 else ""
    return f"{family}, {layout.threads} threads of {layout.elements_per_thread}{cluster}"

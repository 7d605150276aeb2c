"""`mlirfuse calibrate`: measures the machine model of this machine's GPU by microbenchmarks, and keeps it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mlirfuse.errors import ArgumentError, RuntimeLaunchError
from mlirfuse.machine.files import shipped, to_text
from mlirfuse.machine.lookup import calibrated_path, machine_of, shipped_model
from mlirfuse.machine.model import MachineModel
from mlirfuse.runtime.device.cuda import cupy, device_name, device_target
from mlirfuse.target import Target
from mlirfuse.tools.calibration.benchmark import Microbenchmark
from mlirfuse.tools.calibration.results import Measured, measured, model_of, shown
from mlirfuse.tools.calibration.runner import Outcome, outcomes, worker_command
from mlirfuse.tools.calibration.table import BENCHMARKS, chosen
from mlirfuse.tools.reporting import write_text

TIMEOUT = 60.0
LOG_COLUMNS = 160
"""Width of what is printed to a file or a pipe."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--device", metavar="N", type=int, default=0, help="the CUDA device; 0 by default")
    parser.add_argument("--out", metavar="FILE", help="write the model there, and not to the user's cache; - is stdout")
    parser.add_argument("--dry-run", action="store_true", help="list the microbenchmarks, and run none")
    parser.add_argument(
        "--only", metavar="QUANTITY", nargs="+", default=[], help="measure these, and keep the others as they are"
    )
    parser.add_argument(
        "--timeout", metavar="S", type=float, default=TIMEOUT, help=f"seconds of a benchmark; {TIMEOUT:g} by default"
    )


def run(options: argparse.Namespace) -> int:
    """Measures, prints each figure beside the shipped one, and writes the model; 1 where nothing was measured."""
    if options.timeout <= 0:
        raise ArgumentError(
            f"{options.timeout:g} seconds are none to measure in", where="--timeout", hint="more than 0"
        )
    console = Console(stderr=options.out == "-")
    if not console.is_terminal:
        console.width = LOG_COLUMNS
    if options.dry_run:
        console.print(_plan(_listed(options)))
        return 0
    target = device_target(_existing(options.device))
    name = device_name(options.device)
    benchmarks = chosen(target, options.only)
    found = list(measured(benchmarks, _run(console, benchmarks, options)))
    console.print(_table(name, found, shipped_model(target, name)))
    for each in found:
        if each.error:
            console.print(f"not measured: {each.quantity.name}: {each.error}", highlight=False, soft_wrap=True)
    if not any(each.values for each in found):
        return 1
    model = model_of(name, target, found, machine_of(target, name))
    _write(console, model, name, options.out)
    return 0


def _existing(device: int) -> int:
    count = cupy().cuda.runtime.getDeviceCount()
    if not 0 <= device < count:
        raise ArgumentError(f"there is no CUDA device {device}", where="--device", hint=f"0 to {count - 1}")
    return device


def _listed(options: argparse.Namespace) -> Sequence[Microbenchmark]:
    """The benchmarks for the device, or all where there is none."""
    target: Target | None
    try:
        target = device_target(options.device)
    except RuntimeLaunchError:
        target = None
    if target is None:
        return [each for each in BENCHMARKS if not options.only or set(options.only) & set(each.measures)]
    return chosen(target, options.only)


def _run(console: Console, benchmarks: Sequence[Microbenchmark], options: argparse.Namespace) -> dict[str, Outcome]:
    """What comes of the benchmarks, by their names, with a progress bar meanwhile."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[str, Outcome] = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=len(benchmarks))
        command, names = worker_command(options.device), [benchmark.name for benchmark in benchmarks]
        for outcome in outcomes(command, names, options.timeout, lambda name: progress.update(task, description=name)):
            found[outcome.name] = outcome
            progress.advance(task)
    return found


def _plan(benchmarks: Sequence[Microbenchmark]) -> Table:
    table = Table(title=f"{len(benchmarks)} microbenchmarks", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("measures", "how", "spread"):
        table.add_column(column, justify="right" if column == "spread" else "left")
    for benchmark in benchmarks:
        table.add_row("\n".join(benchmark.measures), benchmark.how, f"{benchmark.spread:.0%}")
    return table


def _table(name: str, found: Sequence[Measured], known: MachineModel) -> Table:
    table = Table(title=name, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("quantity", "measured", "shipped", "ratio", "spread", "shipped value from"):
        table.add_column(column, justify="left" if column in ("quantity", "shipped value from") else "right")
    for each in found:
        quantity, before = each.quantity, getattr(known, each.quantity.name)
        row = [quantity.name, "[bold red]none[/]", shown(before, quantity.unit), "", ""]
        if each.values:
            noise = f"{each.spread:.1%}" if len(each.values) > 1 else ""
            row[1] = shown(each.value, quantity.unit)
            row[3] = f"{each.value / before:.2f}" if before else ""
            row[4] = f"[yellow]{noise}[/]" if each.is_noisy else noise
        table.add_row(*row, known.sources.get(quantity.name, ""))
    return table


def _write(console: Console, model: MachineModel, device: str, out: str | None) -> None:
    """Writes the model to a file, or to the user's cache."""
    path = out or calibrated_path(device)
    if path is None:
        console.print("kept in no file: MLIRFUSE_MACHINES is off")
        return
    if out is None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    # A shipped file that is measured again stays the file of its chips and names.
    before = next((file for file in shipped().values() if device in file.devices), None)
    devices, generic_for = (before.devices, before.generic_for) if before else ((device,), ())
    write_text(str(path), to_text(model, devices, generic_for))
    console.print(f"kept in {path}", highlight=False, soft_wrap=True)

"""`mlirfuse selftest`: names the assembler, and tests it and the driver's on known miscompilations."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from mlirfuse.lowering.ptx.assembler import chosen_assembler
from mlirfuse.lowering.ptx.miscompilation_probes import THREADS
from mlirfuse.runtime.device.cuda import device_target
from mlirfuse.runtime.selftest import Outcome, outcomes


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--device", metavar="N", type=int, default=0, help="the CUDA device; 0 by default")


def run(options: argparse.Namespace) -> int:
    """Prints the results; returns 1 where a pattern is miscompiled as mlirfuse emits it."""
    console = Console()
    target = device_target(options.device)
    console.print(f"Kernels for {target.chip} are assembled by {chosen_assembler(target)}.", highlight=False)
    found = list(outcomes(options.device))
    console.print(_table(found))
    wrong = [outcome for outcome in found if outcome.wrong_with_workaround]
    if wrong:
        console.print("[bold red]A known miscompilation is not worked around[/]: please report the table.")
    return 1 if wrong else 0


def _table(found: list[Outcome]) -> Table:
    table = Table(title=f"Wrong results of {THREADS}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("assembler", "pattern", "as it is", "with its workaround"):
        table.add_column(column, justify="left" if column in ("assembler", "pattern") else "right")
    for outcome in found:
        counts = (outcome.wrong, outcome.wrong_with_workaround)
        shown = (f"[bold red]{count}[/]" if count else "0" for count in counts)
        table.add_row(str(outcome.assembler), str(outcome.probe), *shown)
    return table

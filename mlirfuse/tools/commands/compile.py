"""`mlirfuse compile FILE.py:FUNCTION`: prints the IR of any stage, the PTX, and each kernel's resources."""

from __future__ import annotations

import argparse

from rich.console import Console

from mlirfuse.errors import ArgumentError
from mlirfuse.tools.commands.tables import print_resources, resource_table
from mlirfuse.tools.commands.user_function import add_arguments, compile_function
from mlirfuse.tools.reporting import STREAM, write_text

STAGES = ("linalg", "tile", "gpu", "nvvm", "ptx")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_arguments(parser)
    parser.add_argument("--stage", choices=STAGES, help="print the text of this stage; without it, the resource table")
    parser.add_argument("-o", "--output", default=STREAM, metavar="FILE", help="where to write the stage's text")


def run(options: argparse.Namespace) -> int:
    """Compiles; prints a stage's text on standard output, or the resource table (which needs ptxas).

    The table is also printed where the text goes into a file and ptxas is installed.
    """
    if options.stage is None and options.output != STREAM:
        raise ArgumentError(
            "--output without --stage has no text to write",
            where="--output",
            hint="add --stage; the table is only printed",
        )
    compiled = compile_function(options)
    if options.stage is None:
        Console().print(resource_table(compiled.resources))
        return 0
    write_text(options.output, compiled.as_text(options.stage).rstrip("\n") + "\n")
    if options.output != STREAM:
        print_resources(Console(), compiled)
    return 0

"""`mlirfuse explain FILE.py:FUNCTION`: what was compiled, what bounds it, and with `--verbose` all remarks."""

from __future__ import annotations

import argparse

from mlirfuse.tools.commands.user_function import add_arguments, compile_function


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_arguments(parser)
    parser.add_argument("--verbose", action="store_true", help="all remarks of passes too, one a line")


def run(options: argparse.Namespace) -> int:
    """Compiles and prints the explanation."""
    print(compile_function(options).explain(verbose=options.verbose))
    return 0

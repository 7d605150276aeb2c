"""`mlirfuse explain FILE.py:FUNCTION`: what was fused, how it is scheduled, and what passes declined to do."""

from __future__ import annotations

import argparse

from mlirfuse.tools.commands.user_function import add_arguments, compile_function


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Compiles and prints the explanation."""
    print(compile_function(options).explain())
    return 0

"""`mlirfuse`: compiles, explains and tunes functions, measures the GPU, runs IR on the CPU, and has a demo.

Each subcommand is a module with `configure(parser)` and `run(options) -> exit code`, imported when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import mlirfuse
from mlirfuse.errors import ArgumentError
from mlirfuse.tools.reporting import Parser, run_tool

COMMANDS = {
    "demo": "compile and run a fused LayerNorm, on the GPU where there is one",
    "compile": "compile a Python function; print IR, PTX or a resource table",
    "explain": "say how a Python function was fused and scheduled, and why",
    "tune": "measure schedules of a Python function's kernels on the GPU, and keep the fastest",
    "calibrate": "measure this machine's GPU by microbenchmarks, for the cost model",
    "selftest": "run known miscompilations of assemblers on the GPU; say which assembler is used",
    "run": "execute an IR file of the linalg, tile or gpu stage on the CPU, with checks",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with those arguments (the process's by default) and returns its exit code."""
    return run_tool("mlirfuse", lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    parser = Parser("mlirfuse", description="A fusion compiler for NVIDIA GPUs, in MLIR.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"mlirfuse {mlirfuse.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    # Only the command that is run is imported: `demo --help` needs no interpreter, `run` no compiler.
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == asked:
            module = import_module(f"mlirfuse.tools.commands.{name}")
            module.configure(command)
            command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        raise ArgumentError("no command was given", hint=f"commands: {', '.join(COMMANDS)}; mlirfuse --help")
    code: int = options.run(options)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The command line of `mlirfuse-opt`: options, and pass flags in the order they were given."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence

from mlir import ir
from mlir.passmanager import PassManager

import mlirfuse
from mlirfuse.compiler import pipeline
from mlirfuse.errors import ArgumentError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.spec import options_of
from mlirfuse.passmanager.syntax import ANCHOR, parse_pipeline
from mlirfuse.support.renamed_names import renamed
from mlirfuse.target import DEFAULT, TARGETS
from mlirfuse.tools.reporting import STREAM, Parser

_DESCRIPTION = """Runs passes on MLIR text and prints the result.

Passes are mlirfuse's and upstream's alike. They run in the order of their flags (--fuse-segment --canonicalize
--fuse-assign-schedule='tuned=true'), or as --pass-pipeline='builtin.module(fuse-segment,canonicalize)' says."""


def make_parser() -> Parser:
    """The parser of everything but pass flags, which it leaves over."""
    parser = Parser(
        "mlirfuse-opt",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"mlirfuse-opt {mlirfuse.__version__}")
    parser.add_argument("input", nargs="?", default=STREAM, help="the file; - (the default) is standard input")
    parser.add_argument("-o", "--output", default=STREAM, metavar="FILE", help="where to write; not touched on errors")
    parser.add_argument(
        "--emit", choices=("mlir", "ptx"), default="mlir", help="ptx: lower the gpu.modules and print PTX"
    )
    parser.add_argument(
        "--target",
        metavar="CHIP",
        help=f"one of {', '.join(TARGETS)}; the module's fuse.target by default, else {DEFAULT}",
    )
    parser.add_argument("--sms", type=int, metavar="N", help="SMs of the device, by default of the best-known part")
    passes = parser.add_argument_group("passes")
    passes.add_argument("--pass-pipeline", metavar="TEXT", help="a textual pipeline")
    passes.add_argument(
        "--stop-after", metavar="PASS[,N]", help="leave out what follows that pass (its N-th occurrence)"
    )
    passes.add_argument("--list-passes", action="store_true", help="list mlirfuse's passes and named pipelines")
    passes.add_argument("--verify-each", choices=("true", "false"), default="true", help="verify after every pass")
    reports = parser.add_argument_group("reports, on standard error")
    reports.add_argument("--show-remarks", action="store_true", help="print what passes did and declined to do")
    reports.add_argument("--mlir-print-ir-after-all", action="store_true", help="print the IR after every pass")
    reports.add_argument("--mlir-print-ir-after-change", action="store_true", help="... after passes that changed it")
    reports.add_argument("--mlir-timing", action="store_true", help="print how long each pass took")
    text = parser.add_argument_group("reading and printing")
    text.add_argument(
        "--split-input-file", action="store_true", help="take the parts between // ----- lines one by one"
    )
    text.add_argument(
        "--verify-diagnostics",
        choices=("all", "only-expected"),
        help="check diagnostics against // expected-error {{...}} comments; with 'all', others are errors",
    )
    text.add_argument("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    text.add_argument("--mlir-print-debuginfo", action="store_true", help="print locations")
    text.add_argument("--mlir-print-op-generic", action="store_true", help="print the generic form")
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, str]:
    """The options and the textual pipeline that the command line asks for.

    Raises:
        ArgumentError: an argument that is neither an option nor a pass, or both forms of pipeline at once.
        PipelineError: the pipeline's syntax.
    """
    parser = make_parser()
    given = sys.argv[1:] if arguments is None else arguments
    # Its mode only comes after "=", as in mlir-opt; argparse would take the input file for it.
    given = ["--verify-diagnostics=all" if argument == "--verify-diagnostics" else argument for argument in given]
    # argparse takes an unknown flag with a space in it, which options of a pass may have, for the input file.
    known = _option_strings(parser)
    flags = [a for a in given if a.startswith("--") and a != "--" and a.partition("=")[0] not in known]
    options, unknown = parser.parse_known_args([a for a in given if a not in flags])
    flags += unknown
    if flags and options.pass_pipeline is not None:
        raise ArgumentError(
            f"{flags[0]} cannot be combined with --pass-pipeline", hint="put the pass into the pipeline"
        )
    if options.pass_pipeline is not None:
        return options, options.pass_pipeline
    return options, f"{ANCHOR}({','.join(_elements(flag, parser) for flag in flags)})"


def list_passes() -> str:
    """The text of `--list-passes`."""
    lines = ["Passes (and all of upstream's):"]
    for name in pipeline.passes():
        cls = registry.lookup(name)
        lines.append(f"  --{name}")
        lines.append(f"      {registry.summary(cls)}")
        lines += [
            f"        {option.name}={option.type_name}, {option.default!r} by default" for option in options_of(cls)
        ]
    lines += ["", "Pipelines:", *(f"  --{name}" for name in pipeline.NAMED)]
    return "\n".join(lines) + "\n"


def _elements(flag: str, parser: Parser) -> str:
    """The pipeline element of a pass flag `--name` or `--name=options`."""
    name, _, options = flag.removeprefix("--").partition("=")
    if flag.startswith("--") and name in pipeline.NAMED and not options:
        return ",".join(map(str, parse_pipeline(pipeline.named(name))))
    if not flag.startswith("--") or not (registry.find(name) or _is_upstream(name)):
        known = [*(f"--{known}" for known in (*pipeline.passes(), *pipeline.NAMED)), *_option_strings(parser)]
        close = difflib.get_close_matches(flag.partition("=")[0], known, n=1)
        other = (
            f"did you mean {close[0]}?"
            if close
            else f"{parser.prog} --help and --list-passes list all options and passes"
        )
        hint = renamed("pass", name) or other
        raise ArgumentError(f"{flag!r} is neither an option nor a pass", hint=hint)
    return f"{name}{{{options}}}" if options else name


def _is_upstream(name: str) -> bool:
    """Whether upstream has a pass or pipeline of that name."""
    with ir.Context():
        try:
            PassManager().add(name)
        except ValueError as error:
            # Anything else it refuses (a pass of another op, options that must be given) is about a pass it knows.
            return "does not refer to a registered pass" not in str(error)
    return True


def _option_strings(parser: argparse.ArgumentParser) -> list[str]:
    return [string for action in parser._actions for string in action.option_strings]

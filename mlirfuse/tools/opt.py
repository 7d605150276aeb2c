"""`mlirfuse-opt`: reads IR, runs passes, prints IR or PTX, in mlir-opt's manner.

```
mlirfuse-opt --fuse-gpu-pipeline --stop-after=fuse-segment layer_norm.mlir
mlirfuse-opt --fuse-lower-pipeline --target=sm_100a --emit=ptx -o layer_norm.ptx layer_norm.mlir
```

Exit code 0, or 1 with the error on standard error. No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.analysis.segments.segments import CHEAP_OPS
from mlirfuse.compiler.context import make_context
from mlirfuse.dialect.attributes import ABI
from mlirfuse.dialect.module_target import set_target, target_of_module
from mlirfuse.errors import IRError, MlirFuseError
from mlirfuse.lowering import kernel_func
from mlirfuse.lowering.ptx import to_ptx
from mlirfuse.passes.fusion.segment import GENERALIZE, FuseSegment
from mlirfuse.passmanager.base import Remarks
from mlirfuse.passmanager.manager import Instrumentation, Pipeline
from mlirfuse.support.diagnostics import Diagnostic, at_place, from_error, from_mlir, parse_file, parse_module
from mlirfuse.target import target_of
from mlirfuse.tools.attributes import verify_attributes
from mlirfuse.tools.expected import expectations, unmet
from mlirfuse.tools.opt_arguments import list_passes, parse_arguments
from mlirfuse.tools.reporting import STREAM, read_text, run_tool, write_text

_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A module's text, and where it begins in the file.

    Attributes:
        text: the text.
        first_line: number of its first line, from 1.
        whole: whether it is all of the file.
    """

    text: str
    first_line: int = 1
    whole: bool = True


@dataclass(frozen=True)
class Outcome:
    """The result of a chunk.

    Attributes:
        output: the text to print; None where there was an error.
        diagnostics: its diagnostics, errors and passes' remarks included.
        error: the error, where there was one.
    """

    output: str | None
    diagnostics: tuple[Diagnostic, ...]
    error: MlirFuseError | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with those arguments (the process's by default) and returns its exit code."""
    return run_tool("mlirfuse-opt", lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    options, text = parse_arguments(arguments)
    if options.list_passes:
        write_text(options.output, list_passes())
        return 0
    target_of(options.target)  # checked here, as an unknown target is an error even where no pass uses it
    pipeline = Pipeline.parse(text, stop_after=options.stop_after)
    source = read_text(options.input)
    chunks = list(_split(source)) if options.split_input_file else [Chunk(source)]
    outcomes, failed = [], False
    for chunk in chunks:
        outcome = _process(chunk, pipeline, options)
        failed |= not _report(chunk, outcome, options)
        outcomes.append(outcome)
    if options.output == STREAM or not failed:
        texts = [outcome.output for outcome in outcomes if outcome.output is not None]
        write_text(options.output, "\n// -----\n".join(texts))
    return int(failed)


def _split(source: str) -> Iterator[Chunk]:
    """The parts of a file between lines that begin with `// -----`."""
    start = 0
    for match in [*_SEPARATOR.finditer(source), None]:
        end = match.start() if match else len(source)
        yield Chunk(source[start:end], 1 + source.count("\n", 0, start), whole=False)
        start = match.end() if match else end


def _process(chunk: Chunk, pipeline: Pipeline, options: argparse.Namespace) -> Outcome:
    """Parses, transforms and prints one chunk."""
    context = make_context()
    context.allow_unregistered_dialects = options.allow_unregistered_dialect
    found: list[Diagnostic] = []
    remarks = Remarks()

    def handle(info: ir.Diagnostic) -> bool:
        found.append(from_mlir(info))
        return True

    output, error = None, None
    with context.attach_diagnostic_handler(handle):
        try:
            module = _parse(chunk, context, options.input)
            verify_attributes(module.operation)
            _set_target(module.operation, options)
            pipeline.run(module, _instrumentation(options), remarks)
            output = _ptx(module, options.target, remarks) if options.emit == "ptx" else _text(module, options)
        except MlirFuseError as raised:
            error = raised
    found += (at_place("remark", f"{r.pass_name}: {r.kind}: {r.message}", r.place) for r in remarks.entries)
    found += from_error(error) if error is not None else ()
    return Outcome(output, tuple(_in_file(diagnostic, options.input) for diagnostic in found), error)


def _set_target(module: ir.Operation, options: argparse.Namespace) -> None:
    """Gives the module the target that the command line asks for, in place of its own."""
    if options.target is None and options.sms is None:
        return
    target = target_of_module(module) if options.target is None else target_of(options.target)
    set_target(module, target if options.sms is None else target.with_sms(options.sms))


def _parse(chunk: Chunk, context: ir.Context, path: str) -> ir.Module:
    if chunk.whole and path != STREAM:
        return parse_file(path, context)
    # Blank lines in front keep the line numbers of diagnostics those of the file.
    return parse_module("\n" * (chunk.first_line - 1) + chunk.text, context)


def _in_file(diagnostic: Diagnostic, path: str) -> Diagnostic:
    """The diagnostic with the file's name in place of MLIR's for text that it was handed."""
    notes = tuple(_in_file(note, path) for note in diagnostic.notes)
    return replace(diagnostic, notes=notes, file=path if diagnostic.file == "-" else diagnostic.file)


def _instrumentation(options: argparse.Namespace) -> Instrumentation:
    return Instrumentation(
        verify_each=options.verify_each == "true",
        print_after_all=options.mlir_print_ir_after_all,
        print_after_change=options.mlir_print_ir_after_change,
        timing=options.mlir_timing,
    )


def _text(module: ir.Module, options: argparse.Namespace) -> str:
    text = module.operation.get_asm(
        enable_debug_info=options.mlir_print_debuginfo, print_generic_op_form=options.mlir_print_op_generic
    )
    return text.rstrip("\n") + "\n"


def _ptx(module: ir.Module, asked: str | None, remarks: Remarks) -> str:
    """The PTX of all kernels of a module that `fuse-lower-pipeline` has seen.

    Raises `IRError` for other kernels, for ops that became part of none, and for kernels that are lowered for another
    target than the one asked for.
    """
    target = None if asked is None else target_of(asked)
    for remark in remarks.entries:
        if remark.pass_name == FuseSegment.name and remark.kind == "declined" and GENERALIZE in remark.message:
            hint = "--linalg-generalize-named-ops rewrites named ops to linalg.generic"
            raise IRError(f"no kernel computes this: {remark.message}", where=remark.place, hint=hint)
    for kernel in kernel_func.kernels(module.operation):
        if ABI not in kernel.attributes:
            raise IRError(
                f"{symbol(kernel.operation)} is at the gpu stage, which has no PTX yet",
                where=kernel,
                hint="run --fuse-lower-pipeline",
            )
        if not kernel_func.has_target(kernel):
            continue
        own = kernel_func.target_of_kernel(kernel)
        if target is not None and own != target:
            raise IRError(f"{symbol(kernel.operation)} is lowered for {own.chip}, not for {target.chip}", where=kernel)
        target = own
    to_ptx.to_nvvm(module.operation)
    binaries = to_ptx.ptx(module.operation, target or target_of(None))
    if not binaries:
        what = "there is no kernel to emit PTX for"
        if not any(remark.pass_name == FuseSegment.name for remark in remarks.entries):
            raise IRError(what, hint="run --fuse-lower-pipeline")
        known = CHEAP_OPS | {"func.return", "func.call"}
        for op in (op for function in functions(module.operation) for op in body(function) if op.name not in known):
            raise IRError(f"{what}: {op.name} is not put into kernels", where=op, hint="kernels are made of linalg ops")
        raise IRError(what, hint="the functions compute nothing")
    return "\n".join(binary.ptx.rstrip("\n") + "\n" for binary in binaries.values())


def _report(chunk: Chunk, outcome: Outcome, options: argparse.Namespace) -> bool:
    """Prints a chunk's diagnostics; returns whether the chunk counts as a success."""
    if options.verify_diagnostics:
        expected = expectations(chunk.text, options.input, chunk.first_line)
        strict = options.verify_diagnostics == "all"
        problems = unmet(expected, outcome.diagnostics, options.input, strict=strict)
        for problem in problems:
            print(problem, file=sys.stderr)
        return not problems
    for diagnostic in outcome.diagnostics:
        if diagnostic.severity != "remark" or options.show_remarks:
            print(
                diagnostic if diagnostic.file else f"mlirfuse-opt: {diagnostic.severity}: {diagnostic.message}",
                file=sys.stderr,
            )
    if outcome.error is not None and outcome.error.hint:
        print(f"  hint: {outcome.error.hint}", file=sys.stderr)
    return outcome.error is None


if __name__ == "__main__":
    sys.exit(main())

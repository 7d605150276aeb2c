"""`mlirfuse run FILE.mlir --input ...`: executes IR on the CPU, with the interpreter's checks.

The IR is of the linalg, tile or gpu stage; what is lowered further has no rules.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.compiler.context import make_context
from mlirfuse.dialect.attributes import ABI, KERNEL, LAUNCH
from mlirfuse.errors import ArgumentError
from mlirfuse.interpreter.interpreter import SMS
from mlirfuse.source_locations import source_location
from mlirfuse.support.diagnostics import parse_file, parse_module
from mlirfuse.support.rewriting import ops_named
from mlirfuse.tools.attributes import verify_attributes
from mlirfuse.tools.commands.specs import parse_input, parse_spec, static_shape
from mlirfuse.tools.reporting import STREAM, read_text, write_bytes


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("file", metavar="FILE.mlir", help="IR of the linalg, tile or gpu stage; - is standard input")
    parser.add_argument(
        "--function", metavar="NAME", help="the function to run; without it, the file's only host function"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="DATA",
        help="an argument, in order: FILE.npy, a number, random:f16[8,4096], zeros:, ones:, arange:",
    )
    parser.add_argument(
        "--result", action="append", default=[], metavar="SPEC", help="an output of a kernel on memrefs: f16[8,4096]"
    )
    parser.add_argument(
        "--order", choices=("launch", "reversed", "random"), default="launch", help="order in which blocks start"
    )
    parser.add_argument("--resident", type=int, metavar="N", help="most blocks that run at once")
    parser.add_argument("--sms", type=int, default=SMS, metavar="N", help="SMs, for persistent kernels")
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs and of --order=random")
    parser.add_argument("--print", action="store_true", help="print the results' elements")
    parser.add_argument("--save", metavar="DIR", help="write the results there, as result_0.npy, ...")


def run(options: argparse.Namespace) -> int:
    """Interprets the function and prints a line for each result."""
    for name, given, least in (("--sms", options.sms, 1), ("--seed", options.seed, 0)):
        if given < least:
            raise ArgumentError(f"{given} is less than {least}", where=name)
    context = make_context()
    if options.file == STREAM:
        module = parse_module(read_text(STREAM), context)
    else:
        Path(options.file).read_bytes()  # a missing file is an OSError with its name
        module = parse_file(options.file, context)
    verify_attributes(module.operation)
    _check_stage(module)
    inputs = [parse_input(text, options.seed + index) for index, text in enumerate(options.input)]
    schedule = {
        "order": options.order,
        "seed": options.seed,
        "resident": options.resident,
        "progress": True,
        "sms": options.sms,
    }
    if options.result:
        results = [_output(text) for text in options.result]
        name = options.function or _only(_kernels(module), "kernel")
        interpreter.run_kernel(module, name, inputs, results, **schedule)
    else:
        name = options.function or _only(_host_functions(module), "host function")
        results = interpreter.run(module, name, inputs, **schedule)
    for index, result in enumerate(results):
        print(f"result {index}: {_summary(result)}")
        if options.print:
            print(np.array2string(result, threshold=1000))
    if options.save:
        _save(Path(options.save), results)
    return 0


def _check_stage(module: ir.Module) -> None:
    """Raises `ArgumentError` for kernels of the nvvm stage."""
    functions_of_threads = ops_named(module.operation, "llvm.func", "gpu.func")
    lowered = [f for f in functions_of_threads if f.name == "llvm.func" or ABI in f.attributes]
    if lowered:
        raise ArgumentError(
            f"{symbol(lowered[0])} is at the nvvm stage, which cannot be interpreted",
            where=source_location(lowered[0].location),
            hint="give IR of the linalg, tile or gpu stage: mlirfuse compile --stage gpu",
        )


def _output(text: str) -> np.ndarray:
    spec = parse_spec(text)
    shape = static_shape(spec, repr(text))
    return np.zeros(shape, spec.dtype.numpy)  # type: ignore[union-attr]


def _summary(array: np.ndarray) -> str:
    shape = ",".join(map(str, array.shape))
    if array.size == 0:
        return f"{array.dtype}[{shape}], empty"
    wide = array.astype(np.float64)
    return f"{array.dtype}[{shape}], min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"


def _host_functions(module: ir.Module) -> list[str]:
    return [symbol(f) for f in functions(module.operation) if KERNEL not in f.attributes and LAUNCH not in f.attributes]


def _kernels(module: ir.Module) -> list[str]:
    names: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "gpu.func" or (op.name == "func.func" and KERNEL in op.attributes):
            names.append(symbol(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names


def _only(names: list[str], kind: str) -> str:
    if len(names) != 1:
        hint = f"name one of {', '.join(names)}" if names else "a kernel on memrefs needs --result for each output"
        raise ArgumentError(f"the file has {len(names)} {kind}s", where="--function", hint=hint)
    return names[0]


def _save(directory: Path, results: list[np.ndarray]) -> None:
    """Writes the arrays, each whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    for index, result in enumerate(results):
        buffer = io.BytesIO()
        np.save(buffer, result)
        write_bytes(directory / f"result_{index}.npy", buffer.getvalue())

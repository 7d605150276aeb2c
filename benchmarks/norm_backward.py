"""Backward passes of RMSNorm and LayerNorm against torch.add of the same size, torch.compile, quack and Liger.

    python benchmarks/norm_backward.py [--kernels rms_norm,layer_norm] [--shapes 576000x384,8192x16384 | table | extra]
                                       [--contestants mlirfuse,quack] [--compile-only | --no-checks] [--out DIR]

All in bfloat16. A backward pass reads dy and x and writes dx, as torch.add does; the gradients of the vectors, sums
over rows, come with it. Peers, and mlirfuse's own kernels kept apart, take part at the sizes of the table.
`--compile-only` calls every contestant once and times nothing: run in several processes before, it fills the caches of
torch.compile on disk. Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from backward_fusions import DOUBLE, EPSILON, FUSED, RESULTS, SAVED
from backward_peers import PEERS, Arguments, peer
from machine import machine, missing
from norm_backward_targets import CEILING, EXTRA, SPLIT, TABLE, Shape, checks
from report import MLIRFUSE, Accuracy, Measurement, Results, check_table, measurement_table, write_json
from rich.console import Console
from timing import Contestant, input_sets, release_memory, run_contest

import mlirfuse as mf
from mlirfuse.runtime.device.module import driver_resources, load

CONTESTANTS = (CEILING, MLIRFUSE, SPLIT, *PEERS)
NAMED_SHAPES = {"table": TABLE, "extra": EXTRA, "all": (*TABLE, *EXTRA)}
REPEATS = 100
STREAMS = 3
"""dy, x and dx."""

console = Console(width=200)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line: `kernels`, `shapes` and `contestants` become tuples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=_one_of(tuple(FUSED)), default=tuple(FUSED), help="comma-separated")
    parser.add_argument("--shapes", type=_shapes, default=NAMED_SHAPES["all"], help="rowsxcolumns,..., table or extra")
    parser.add_argument("--contestants", type=_one_of(CONTESTANTS), default=CONTESTANTS, help="comma-separated")
    parser.add_argument("--compile-only", action="store_true", help="call every contestant once")
    parser.add_argument("--no-checks", action="store_true", help="leave out errors, stack and equality of bits")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the JSON file")
    return parser.parse_args(arguments)


def _one_of(choices: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Parses a comma-separated list of choices."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = set(names) - set(choices)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(choices)}")
        return names

    return parse


def _shapes(text: str) -> tuple[Shape, ...]:
    if text in NAMED_SHAPES:
        return NAMED_SHAPES[text]
    shapes: list[Shape] = []
    for part in text.split(","):
        rows, _, columns = part.partition("x")
        if not (rows.isdecimal() and columns.isdecimal() and int(rows) and int(columns)):
            raise argparse.ArgumentTypeError(f"{part!r} is not ROWSxCOLUMNS")
        shapes.append((int(rows), int(columns)))
    return tuple(shapes)


def make_inputs(kernel: str, shape: Shape, sets: int) -> list[Arguments]:
    """Arguments of the backward function for every set; w is shared."""
    import torch

    torch.manual_seed(shape[1])
    w = torch.randn(shape[1], device="cuda", dtype=torch.bfloat16)
    arguments = []
    for _ in range(sets):
        dy, x = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        arguments.append((dy, x, w, *SAVED[kernel](x)))
    return arguments


def make_outputs(kernel: str, inputs: Arguments) -> tuple[Any, ...]:
    """dx, and as many vectors as the function has."""
    import torch

    _, x, w, *_ = inputs
    return (torch.empty_like(x), *(torch.empty_like(w) for _ in RESULTS[kernel][1:]))


def measure(kernel: str, shape: Shape, names: tuple[str, ...], compile_only: bool) -> Measurement:
    """Times one function at one size; in a dry run only calls it."""
    import torch

    rows, columns = shape
    nbytes = 2 * rows * columns
    sets = 1 if compile_only else input_sets(nbytes)
    inputs = make_inputs(kernel, shape, sets)
    outputs = [make_outputs(kernel, arguments) for arguments in inputs]
    contestants = []
    first = None
    failures = {}
    for name in names:
        if name == CEILING:
            contestants.append(Contestant(CEILING, lambda i: torch.add(inputs[i][0], inputs[i][1], out=outputs[i][0])))
        elif name == MLIRFUSE:
            fused = mf.fuse(FUSED[kernel])
            try:
                first = _first_call(fused, inputs[0], outputs[0])
            except mf.MlirFuseError as error:
                failures[name] = str(error)[:200]
                continue
            contestants.append(Contestant(name, lambda i, fused=fused: fused(*inputs[i], out=outputs[i])))
        elif name == SPLIT and shape in TABLE:
            split = mf.fuse(FUSED[kernel], mix_order="split")
            contestants.append(Contestant(name, lambda i, split=split: split(*inputs[i], out=outputs[i])))
        elif shape in TABLE:
            contestants.append(peer(name, kernel, inputs))
    if compile_only:
        for contestant in contestants:
            try:
                contestant.call(0)
            except Exception as error:  # noqa: BLE001  # whatever a peer raises must not end the run; it is reported
                failures[contestant.name] = f"{type(error).__name__}: {str(error).strip()[:200]}"
        torch.cuda.synchronize()
        return Measurement(kernel, rows, columns, nbytes, {}, failures)
    with torch.no_grad():
        contest = run_contest(contestants, sets, nbytes)
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    failures |= contest.failures
    return Measurement(kernel, rows, columns, nbytes, times, failures, first, ceiling=CEILING, streams=STREAMS)


def _first_call(fused: mf.Fused, inputs: Arguments, outputs: tuple[Any, ...]) -> float:
    """Seconds to compile, load and run."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    fused(*inputs, out=outputs)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def check(m: Measurement) -> tuple[Measurement, list[Accuracy]]:
    """Whether many runs give equal bits, how much stack the kernels use, and errors; run after all timing."""
    import torch

    shape = (m.rows, m.columns)
    (inputs,) = make_inputs(m.kernel, shape, 1)
    fused = mf.fuse(FUSED[m.kernel])
    first, again = (make_outputs(m.kernel, inputs) for _ in range(2))
    for poisoned in (*first, *again):
        poisoned.fill_(float("nan"))
    fused(*inputs, out=first)
    repeatable = True
    for _ in range(REPEATS):
        fused(*inputs, out=again)
        repeatable &= all(
            torch.equal(a.view(torch.int16), b.view(torch.int16)) for a, b in zip(first, again, strict=True)
        )
    compiled = fused.lower(*inputs).compile()
    loaded = [load(binary, compiled.infos[name], 0) for name, binary in compiled.binaries.items()]
    stack = max(driver_resources(kernel).stack_bytes or 0 for kernel in loaded)
    dy, x, w, *_ = inputs
    references = DOUBLE[m.kernel](dy, x, w)
    accuracy = [
        Accuracy(f"{m.kernel} {result} of {m.rows} rows,", m.columns, _error(ours, exact), _error(theirs, exact))
        for result, ours, theirs, exact in zip(
            RESULTS[m.kernel], first, autograd(m.kernel, dy, x, w), references, strict=True
        )
    ]
    return replace(m, repeatable=repeatable, stack_bytes=stack), accuracy


def autograd(kernel: str, dy: Any, x: Any, w: Any) -> tuple[Any, ...]:
    """The gradients that PyTorch's own kernels compute."""
    import torch

    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    if kernel == "rms_norm":
        y = torch.nn.functional.rms_norm(x, w.shape, w, EPSILON)
        return torch.autograd.grad(y, (x, w), dy)
    b = torch.zeros_like(w, requires_grad=True)
    y = torch.nn.functional.layer_norm(x, w.shape, w, b, EPSILON)
    return torch.autograd.grad(y, (x, w, b), dy)


def _error(result: Any, exact: Any) -> float:
    return (result.double() - exact).abs().max().item()


def run(options: argparse.Namespace) -> int:
    """Measures, checks, prints, writes; returns 1 where a target is missed or mlirfuse has no time."""
    start = time.perf_counter()
    results = Results(machine())
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "norm_backward.json"
    if MLIRFUSE in options.contestants:
        # Passes are imported when they first run; a first call is timed without imports.
        mf.fuse(FUSED["layer_norm"]).lower(*_small_specs()).compile()
    for kernel in options.kernels:
        for shape in options.shapes:
            m = measure(kernel, shape, options.contestants, options.compile_only)
            results.measurements.append(m)
            release_memory()
            ratio = m.ratio(MLIRFUSE)
            share = "" if ratio is None else f"{ratio:.3f} of torch.add"
            console.print(
                f"{time.perf_counter() - start:6.1f} s  {kernel} {shape[0]} x {shape[1]}  {share} {m.failures or ''}",
                highlight=False,
            )
    if options.compile_only:
        return 0
    write_json(results, checks(results), path)
    for position, m in enumerate(results.measurements):
        if MLIRFUSE in m.microseconds and not options.no_checks:
            results.measurements[position], accuracy = check(m)
            results.accuracy += accuracy
            release_memory()
    console.print(" ".join(f"{key} {value}" for key, value in results.machine.items()), highlight=False)
    for kernel in options.kernels:
        console.print(measurement_table(f"{kernel} backward, bfloat16", results.of(kernel)))
    found = checks(results)
    console.print(check_table(found))
    write_json(results, found, path)
    missing = MLIRFUSE in options.contestants and any(MLIRFUSE not in m.microseconds for m in results.measurements)
    return int(missing or not all(c.passed for c in found))


def _small_specs() -> list[mf.TensorSpec]:
    tile, row = mf.TensorSpec(("rows", 8), mf.bfloat16), mf.TensorSpec(("rows", 1), mf.float32)
    return [tile, tile, mf.TensorSpec(8, mf.bfloat16), row, row]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    options = parse_arguments(arguments)
    if problem := missing():
        console.print(problem)
        return 2
    return run(options)


if __name__ == "__main__":
    sys.exit(main())

"""`mlirfuse demo`: one fused LayerNorm, from Python to PTX, run and compared with NumPy.

With a GPU it is launched and timed against a copy of the same bytes; without one the interpreter runs the same kernel.
"""

# mypy: disable-error-code="no-untyped-def"
# The function is shown to the user, who need not annotate theirs.

from __future__ import annotations

import argparse
import inspect
import re
import statistics
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import mlirfuse as mf
from mlirfuse.compiler.compile import Compiled
from mlirfuse.errors import ArgumentError, RuntimeLaunchError
from mlirfuse.runtime.device import cuda
from mlirfuse.tools.commands.tables import print_resources

GPU_ROWS, INTERPRETER_ROWS = 8192, 8
REPEATS = 50
_TELLING = tuple(
    re.compile(pattern)
    for pattern in (
        r"griddepcontrol\.wait",
        r"ld\.global\S*(no_allocate|\.cg)",
        r"ld\.global\.(v|b)",
        r"cp\.async\.bulk\.prefetch",
        r"shfl",
        r"bar\.sync",
        r"fma",
        r"griddepcontrol\.launch",
        r"st\.global",
    )
)


def layer_norm(x, b0, b1, w, b):
    """LayerNorm over the last axis of x plus two biases."""
    h = (x + b0 + b1).astype(mf.float32)
    mean = mf.mean(h, axis=-1, keepdims=True)
    variance = mf.mean((h - mean) ** 2, axis=-1, keepdims=True)
    return ((h - mean) * mf.rsqrt(variance + 1e-5) * w + b).astype(x.dtype)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--columns", type=int, default=4096, help="the size that is normalised; 4096 by default")
    parser.add_argument(
        "--rows", type=int, help=f"{GPU_ROWS} by default on a GPU, {INTERPRETER_ROWS} in the interpreter"
    )


def run(options: argparse.Namespace) -> int:
    """Shows the function, its kernel and its result; returns 1 where the result is wrong."""
    for name, given, least in (("--columns", options.columns, 1), ("--rows", options.rows, 0)):
        if given is not None and given < least:
            raise ArgumentError(f"{given} is less than {least}", where=name)
    console = Console()
    console.print(Syntax(inspect.getsource(layer_norm), "python", background_color="default"))
    try:
        cupy = cuda.cupy()
    except RuntimeLaunchError as error:
        console.print(f"{error.message}; {error.hint}.", soft_wrap=True, markup=False)
        console.print("The interpreter runs the kernel here, thread by thread.")
        cupy = None
    rows = options.rows if options.rows is not None else (GPU_ROWS if cupy else INTERPRETER_ROWS)
    arrays = _inputs(rows, options.columns)
    start = time.perf_counter()
    compiled = _compiled(options.columns)
    ptx = compiled.as_text("ptx")
    milliseconds = (time.perf_counter() - start) * 1e3
    console.print(
        f"Compiled to {len(ptx.splitlines())} lines of PTX for {compiled.lowered.target.chip} in {milliseconds:.0f} ms:"
    )
    for line in _excerpt(ptx):
        console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
    print_resources(console, compiled)
    if cupy is None:
        result = mf.fuse(layer_norm, target="interpret")(*arrays)
    else:
        fused = mf.fuse(layer_norm)
        on_device = [cupy.asarray(array) for array in arrays]
        result = cupy.asnumpy(fused(*on_device))
        console.print(_timing(cupy, fused, on_device))
    worst = float(np.abs(result.astype(np.float64) - _reference(*arrays)).max(initial=0.0))
    # Half a unit in the last place of the largest output (magnitude below 8), plus as much for fp32 arithmetic.
    bound = float(np.finfo(np.float16).eps) * 4 * 2
    verdict = "[green]correct[/]" if worst <= bound else "[bold red]wrong[/]"
    console.print(f"{rows} x {options.columns} float16: largest error {worst:.1e} against float64, {verdict}")
    return int(worst > bound)


def _excerpt(ptx: str) -> list[str]:
    """The first instruction of each characteristic kind, with the number of occurrences."""
    lines = [" ".join(line.split()) for line in ptx.splitlines()]
    excerpt = [line for line in lines if line.startswith((".target", ".visible .entry"))]
    for kind in _TELLING:
        found = [line for line in lines if kind.match(line)]
        if found:
            excerpt.append(f"{found[0]:<76} // {len(found)} of these")
    return excerpt


def _inputs(rows: int, columns: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = [(rows, columns), (columns,), (columns,), (columns,), (columns,)]
    return [generator.standard_normal(shape).astype(np.float16) for shape in shapes]


def _compiled(columns: int) -> Compiled:
    """The kernel for any number of rows; needs no GPU."""
    vector = mf.TensorSpec((columns,), mf.float16)
    return mf.fuse(layer_norm).lower(mf.TensorSpec((None, columns), mf.float16), *[vector] * 4).compile()


def _reference(x: np.ndarray, b0: np.ndarray, b1: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    h = ((x + b0).astype(np.float16) + b1).astype(np.float16).astype(np.float64)
    centred = h - h.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    scaled: np.ndarray = centred / np.sqrt(variance + 1e-5) * w.astype(np.float64) + b.astype(np.float64)
    return scaled


def _timing(cupy: Any, fused: Any, arrays: list[Any]) -> Table:
    """Median time of a warm call with `out=`, and of a copy of as many bytes, measured with events in this process."""
    x = arrays[0]
    out = cupy.empty_like(x)
    copied = cupy.empty_like(x)
    table = Table("", "microseconds", "GB/s", title="Reads x once, writes y once", title_justify="left")
    moved = 2 * x.nbytes
    for name, call in (("fused", lambda: fused(*arrays, out=out)), ("copy", lambda: cupy.copyto(copied, x))):
        seconds = _median_seconds(cupy, call)
        table.add_row(name, f"{seconds * 1e6:.1f}", f"{moved / seconds / 1e9:.0f}")
    return table


def _median_seconds(cupy: Any, call: Any) -> float:
    times = []
    for _ in range(REPEATS):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(times)

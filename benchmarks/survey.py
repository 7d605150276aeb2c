"""A look for cliffs: products, reductions, elementwise functions and changes of layout, against eager PyTorch.

    python benchmarks/survey.py [--only REGEX] [--out DIR]

Each function runs as written, once by mlirfuse and once by PyTorch, cold. The share of a stream (bytes of arguments and
results over time, of 4.26 TB/s) says how far a function that memory bounds is from what the device does; PyTorch's time
is a yardstick, not a target. Writes `survey.json`; there is no exit code for speed.
"""
# ruff: noqa: E731  # a survey is a list of functions

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import machine, missing
from rich.console import Console
from rich.table import Table
from timing import Contestant, input_sets, release_memory, run_contest

import mlirfuse as mf

MLIRFUSE, TORCH = "mlirfuse", "torch"
BYTES_PER_US = 4.26e6
RESULTS = Path(__file__).parent / "results"

console = Console(width=140)


@dataclass(frozen=True)
class Case:
    """A function in both, and the shapes and dtype of its arguments."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    fused: Callable[..., Any]
    eager: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.name} {', '.join('x'.join(map(str, shape)) for shape in self.shapes)} {self.dtype}"


def _wide(x: Any) -> Any:
    return x.astype(mf.float32)


def _softmax(x: Any, axis: int) -> Any:
    e = mf.exp(_wide(x) - mf.max(_wide(x), axis=axis, keepdims=True))
    return (e / mf.sum(e, axis=axis, keepdims=True)).astype(x.dtype)


def products() -> Iterator[Case]:
    """Batched ones, all forms, few rows, and rows that are no multiple of a line."""
    forms = {
        "x @ w.mT": (lambda x, w: x @ w.mT, lambda x, w: x @ w.mT, lambda m, n, k: ((m, k), (n, k))),
        "x @ w": (lambda x, w: x @ w, lambda x, w: x @ w, lambda m, n, k: ((m, k), (k, n))),
        "x.mT @ w": (lambda x, w: x.mT @ w, lambda x, w: x.mT @ w, lambda m, n, k: ((k, m), (k, n))),
        "x.mT @ w.mT": (lambda x, w: x.mT @ w.mT, lambda x, w: x.mT @ w.mT, lambda m, n, k: ((k, m), (n, k))),
    }
    for name, (fused, eager, shapes) in forms.items():
        for m, n, k in ((4096, 4096, 4096), (2048, 2048, 2056), (16, 4096, 14336), (1, 14336, 4096)):
            yield Case(name, shapes(m, n, k), "bfloat16", fused, eager)
        yield Case(name, shapes(1024, 1024, 1024), "float32", fused, eager)
    fused, eager, shapes = forms["x @ w.mT"]
    for batch, m, n, k in ((32, 2048, 128, 2048), (64, 512, 512, 512), (16, 4096, 4096, 64), (256, 64, 64, 1024)):
        yield Case("x @ w.mT", tuple((batch, *shape) for shape in shapes(m, n, k)), "bfloat16", fused, eager)


def reductions() -> Iterator[Case]:
    """Over each dimension of arrays of every aspect."""
    shapes: tuple[tuple[int, ...], ...]
    for n in (1 << 26, 10_000_019, 1 << 18):
        yield Case("sum", ((n,),), "float32", lambda x: mf.sum(x), lambda x: x.sum())
    for axis, shapes in (
        (0, ((8192, 8192), (65536, 512), (1_000_000, 16), (128, 65536))),
        (1, ((8192, 8192), (1_000_000, 16), (64, 1_000_000), (2, 1 << 22))),
        (1, ((64, 512, 1024), (65536, 8, 128), (8, 8192, 1024), (64, 3136, 64))),
    ):
        for shape in shapes:
            total = lambda x, axis=axis: mf.sum(_wide(x), axis=axis)
            yield Case(f"sum {axis}", (shape,), "bfloat16", total, lambda x, axis=axis: x.float().sum(axis))
            most = lambda x, axis=axis: mf.max(x, axis=axis)
            yield Case(f"max {axis}", (shape,), "bfloat16", most, lambda x, axis=axis: x.amax(axis))
    for over in ((2, 3), (0, 2, 3)):
        mean = lambda x, over=over: mf.mean(_wide(x), axis=over)
        yield Case(f"mean {over}", ((64, 256, 56, 56),), "bfloat16", mean, lambda x, over=over: x.float().mean(over))


def others() -> Iterator[Case]:
    """Elementwise functions, changes of layout, and normalisations along all axes."""
    square = ((8192, 8192),)
    yield Case("x + y", square * 2, "bfloat16", lambda x, y: x + y, lambda x, y: x + y)
    yield Case("x * r + c", (*square, (8192,), (8192, 1)), "bfloat16", *[lambda x, r, c: x * r + c] * 2)
    yield Case("x.T + 1", square, "bfloat16", lambda x: x.T + 1, lambda x: (x.T + 1).contiguous())
    yield Case("x + x.T", square, "bfloat16", lambda x: x + x.T, lambda x: x + x.T)
    order = (0, 2, 1, 3)
    swapped = lambda x: mf.permute_dims(x, order) + 1
    yield Case("heads", ((64, 1024, 16, 64),), "bfloat16", swapped, lambda x: (x.permute(order) + 1).contiguous())
    for shape, axis in (((8192, 8192), 0), ((1 << 20, 64), 1), ((16, 1 << 20), 1), ((8192, 128256), 1)):
        softmax = lambda x, axis=axis: _softmax(x, axis)
        yield Case(f"softmax {axis}", (shape,), "bfloat16", softmax, lambda x, axis=axis: x.softmax(axis))


def measure(case: Case) -> dict[str, Any]:
    """Times a case: microseconds of both, and the share of a stream, the first call and the error of mlirfuse's."""
    import torch

    dtype = getattr(torch, case.dtype)
    torch.manual_seed(1)
    make = lambda: [torch.randn(shape, device="cuda", dtype=dtype) for shape in case.shapes]
    data, fused = [make()], mf.fuse(case.fused)
    start = time.perf_counter()
    result = fused(*data[0])
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    exact = case.eager(*(x.double() for x in data[0]))
    error = ((result.double() - exact).norm() / exact.norm()).item()
    del exact
    nbytes = sum(x.nbytes for x in (*data[0], result))
    sets = input_sets(nbytes)
    data += [make() for _ in range(sets - 1)]
    calls = {TORCH: case.eager, MLIRFUSE: fused}
    contest = run_contest([Contestant(n, lambda i, f=f: f(*data[i])) for n, f in calls.items()], sets, nbytes, rounds=3)
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    share = nbytes / times[MLIRFUSE] / BYTES_PER_US
    return {"case": str(case), "microseconds": times, "stream": share, "first_call_seconds": first, "error": error}


def table_of(rows: list[dict[str, Any]]) -> Table:
    """One row a case."""
    table = Table(title="Cold, microseconds", title_justify="left")
    for column in ("case", "mlirfuse", "of a stream", "torch", "speed", "first call, s", "error"):
        table.add_column(column, justify="right" if column != "case" else "left")
    for row in rows:
        own, theirs = row["microseconds"][MLIRFUSE], row["microseconds"][TORCH]
        times = f"{own:.1f}", f"{row['stream']:.2f}", f"{theirs:.1f}", f"{theirs / own:.2f}"
        table.add_row(row["case"], *times, f"{row['first_call_seconds']:.2f}", f"{row['error']:.1e}")
    return table


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns 1 where a case fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="cases whose text matches, such as sum")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for survey.json")
    options = parser.parse_args(arguments)
    if problem := missing():
        console.print(problem)
        return 2
    rows, failed = [], 0
    for case in (*products(), *reductions(), *others()):
        if not options.only.search(str(case)):
            continue
        try:
            rows.append(measure(case))
        except Exception as error:  # noqa: BLE001  # the others are still of interest; it is reported, and counts
            failed += 1
            console.print(f"{case}: {type(error).__name__}: {str(error)[:200]}")
        release_memory()
    console.print(table_of(rows))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "survey.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

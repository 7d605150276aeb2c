"""Products in tf32, 3xtf32 and float8 against cuBLAS (through PyTorch) in the same run: GPU time and accuracy.

    python benchmarks/matmul_precisions.py [--out DIR]

Products are x[M, K] @ w[N, K].T with normal data. cuBLAS is asked for the same: TF32 allowed or not, float8 with or
without fast accumulation. 3xtf32 is measured against cuBLAS in float32. Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import machine, missing
from report import Check, at_least, at_most, check_table
from rich.console import Console
from rich.table import Table
from timing import Contestant, input_sets, release_memory, run_contest

import mlirfuse as mf

CUBLAS, MLIRFUSE = "cuBLAS", "mlirfuse"
RESULTS = Path(__file__).parent / "results"
ERROR_ROWS = 64
"""Rows of a result that are compared with float64."""

console = Console(width=160)


@dataclass(frozen=True)
class Problem:
    """A product.

    Attributes:
        m, n, k: its extents.
        dtype: of the operands.
        precision: what `mf.matmul` is asked for.
        out: dtype of the result.
    """

    m: int
    n: int
    k: int
    dtype: str
    precision: str
    out: str

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k} {self.dtype} {self.precision}"

    def fused(self) -> mf.Fused:
        """mlirfuse's product."""
        return mf.fuse(lambda x, w: mf.matmul(x, w.mT, precision=self.precision, dtype=self.out))

    def cublas(self) -> Callable[[Any, Any], Any]:
        """PyTorch's."""
        import torch

        if self.dtype == "float32":

            def multiply(x: Any, w: Any) -> Any:
                torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
                return torch.mm(x, w.T)

            return multiply
        one, fast, out = torch.ones((), device="cuda"), self.precision == "fast_accum", getattr(torch, self.out)
        return lambda x, w: torch._scaled_mm(x, w.T, one, one, out_dtype=out, use_fast_accum=fast)


PROBLEMS = (
    *(Problem(4096, 4096, 4096, "float32", precision, "float32") for precision in ("tf32", "3xtf32", "ieee")),
    *(
        Problem(size, size, size, "float8_e4m3fn", precision, "bfloat16")
        for size in (4096, 8192)
        for precision in ("ieee", "fast_accum")
    ),
)


@dataclass(frozen=True)
class Row:
    """What was measured of a problem: microseconds and the largest error relative to the largest result."""

    problem: Problem
    microseconds: dict[str, float]
    error: dict[str, float]
    failures: dict[str, str]

    @property
    def speed(self) -> float:
        """Relative to cuBLAS."""
        return self.microseconds[CUBLAS] / self.microseconds[MLIRFUSE]

    def teraflops(self, name: str) -> float:
        p = self.problem
        return 2 * p.m * p.n * p.k / self.microseconds[name] / 1e6


def measure(problem: Problem) -> Row:
    """Times a problem, then looks at errors."""
    import torch

    m, n, k = problem.m, problem.n, problem.k
    kind = getattr(torch, problem.dtype)
    nbytes = (m * k + n * k) * kind.itemsize + m * n * getattr(torch, problem.out).itemsize
    sets = input_sets(nbytes)
    torch.manual_seed(k)
    data = [[torch.randn(rows, k, device="cuda").to(kind) for rows in (m, n)] for _ in range(sets)]
    peers = {CUBLAS: problem.cublas(), MLIRFUSE: problem.fused()}
    contest = run_contest(
        [Contestant(name, lambda i, c=call: c(*data[i])) for name, call in peers.items()], sets, nbytes
    )
    x, w = data[0]
    picked = slice(None, None, max(1, m // ERROR_ROWS))
    exact = x[picked].double() @ w.double().T
    errors = {
        name: ((call(x, w)[picked].double() - exact).abs().max() / exact.abs().max()).item()
        for name, call in peers.items()
    }
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    return Row(problem, times, errors, contest.failures)


def checks(rows: list[Row]) -> list[Check]:
    """As fast as cuBLAS, and at most twice its error."""
    found = []
    for row in rows:
        if row.problem.precision == "ieee" and row.problem.dtype == "float32":
            continue  # scalar multiply-adds, for accuracy
        found.append(at_least(f"{row.problem}: speed of cuBLAS", row.speed, 1.0))
        found.append(at_most(f"{row.problem}: error of cuBLAS", row.error[MLIRFUSE] / row.error[CUBLAS], 2.0))
    return found


def table_of(rows: list[Row]) -> Table:
    """Times, speeds and errors."""
    table = Table(title="x[M, K] @ w[N, K].T", title_justify="left")
    for column in ("product", "cuBLAS us", "mlirfuse us", "speed", "TFLOP/s", "error", "cuBLAS' error"):
        table.add_column(column, justify="right")
    for row in rows:
        times = [f"{row.microseconds[name]:.1f}" for name in (CUBLAS, MLIRFUSE)]
        rates = [f"{row.speed:.3f}", f"{row.teraflops(MLIRFUSE):.0f}"]
        table.add_row(str(row.problem), *times, *rates, *(f"{row.error[name]:.1e}" for name in (MLIRFUSE, CUBLAS)))
    return table


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns 1 where a target is missed or a contestant fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for matmul_precisions.json")
    options = parser.parse_args(arguments)
    if problem := missing():
        console.print(problem)
        return 2
    rows = []
    for each in PROBLEMS:
        rows.append(measure(each))
        release_memory()
    timed = [row for row in rows if not row.failures]
    for row in rows:
        for name, reason in row.failures.items():
            console.print(f"{row.problem}: {name} failed: {reason}")
    found = checks(timed)
    console.print(table_of(timed), check_table(found))
    options.out.mkdir(parents=True, exist_ok=True)
    data = {"machine": machine(), "rows": [asdict(row) for row in rows], "checks": [asdict(check) for check in found]}
    (options.out / "matmul_precisions.json").write_text(json.dumps(data, indent=1) + "\n")
    return int(len(timed) < len(rows) or not all(check.passed for check in found))


if __name__ == "__main__":
    sys.exit(main())

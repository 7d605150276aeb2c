"""Matrix products against cuBLAS (through PyTorch) in the same run: GPU time, first call, host time, accuracy.

    python benchmarks/matmul.py [--shapes 4096x4096x4096,...] [--dtypes bfloat16,float16] [--out DIR]

Products are x[M, K] @ w[N, K].T with random data; M, N, K are given in this order. Exit code 1 where a target is
missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import machine, missing
from report import Check, at_least, at_most, check_table, geomean
from rich.console import Console
from rich.table import Table
from timing import Contestant, host_us, input_sets, release_memory, run_contest

import mlirfuse as mf
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.target import target_of

COMPUTE_BOUND = (
    (1024, 2048, 50304),
    (1024, 1024, 8192),
    (2048, 2048, 8192),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (512, 512, 65536),
)
MEMORY_BOUND = (
    (256, 256, 131072),
    (128, 128, 262144),
    (64, 128, 131072),
    (128, 512, 16384),
    (16, 4096, 14336),
    (64, 4096, 14336),
)
EPILOGUE_SHAPE = (4096, 4096, 4096)
SPLIT_SHAPES = ((512, 512, 8192), (256, 512, 8192), (256, 256, 4096))
"""Products whose result does not fill the device, for splits in one kernel against a kernel that adds up the parts."""

DTYPES = ("bfloat16", "float16")
CUBLAS, MLIRFUSE = "cuBLAS", "mlirfuse"
STREAM_BYTES_PER_SECOND = 4.26e12
"""What two reads and a write reach on an H200."""

STREAMS_FROM_BYTES = 30e6
"""Products that move more than this are held to a share of the stream's speed."""

ROUNDS = 15
"""Large products run at the device's limit of power, where a round's times differ by a few percent."""

HOST_LIMIT_US, FIRST_CALL_LIMIT_S = 10, 1.0
RESULTS = Path(__file__).parent / "results"

console = Console(width=160)


def product(x, w):
    """What is measured."""
    return x @ w.T


def with_epilogue(x, w, b):
    """The same with a bias and a GELU, by tanh, behind it."""
    h = mf.matmul(x, w.T, dtype=mf.float32) + b
    return (0.5 * h * (1 + mf.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))).astype(x.dtype)


def parts_of(split: int):
    """A function that makes the parts of a product whose k is split, in f32."""

    def parts(x, w):
        slices = [mf.permute_dims(mf.reshape(a, (a.shape[0], split, -1)), (1, 0, 2)) for a in (x, w)]
        return mf.matmul(slices[0], slices[1].mT, dtype=mf.float32)

    return parts


def add_parts(parts):
    """And the one that adds them up."""
    return mf.sum(parts, axis=0).astype(mf.bfloat16)


@dataclass(frozen=True)
class Row:
    """One product.

    Attributes:
        m, n, k: its extents.
        dtype: of operands and result.
        microseconds: GPU time of a call, by contestant.
        speed: relative to cuBLAS, by round; None where one of them has no time.
        failures: why a contestant has no time.
        first_call_seconds: compiling, loading and launching.
        error: largest error relative to the largest result, against float64, by contestant; on some rows.
    """

    m: int
    n: int
    k: int
    dtype: str
    microseconds: dict[str, float]
    speed: float | None
    failures: dict[str, str]
    first_call_seconds: float
    error: dict[str, float]

    @property
    def nbytes(self) -> int:
        """Bytes of the operands and the result."""
        return 2 * (self.m * self.k + self.n * self.k + self.m * self.n)

    def teraflops(self, name: str) -> float:
        return 2 * self.m * self.n * self.k / self.microseconds[name] / 1e6

    def terabytes(self, name: str) -> float:
        """Per second."""
        return self.nbytes / self.microseconds[name] / 1e6


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; `shapes` becomes a tuple of (M, N, K), `dtypes` a tuple of names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=_shapes, default=COMPUTE_BOUND + MEMORY_BOUND, help="MxNxK, comma-separated")
    parser.add_argument("--dtypes", type=lambda text: tuple(text.split(",")), default=DTYPES, help="comma-separated")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for matmul.json")
    return parser.parse_args(arguments)


def _shapes(text: str) -> tuple[tuple[int, ...], ...]:
    shapes = tuple(tuple(int(part) for part in shape.split("x")) for shape in text.split(","))
    if any(len(shape) != 3 or min(shape) < 1 for shape in shapes):
        raise argparse.ArgumentTypeError("a shape is MxNxK, all positive")
    return shapes


def measure(m: int, n: int, k: int, dtype: str) -> Row:
    """Times one product; accuracy is checked after all timing of this size."""
    import torch

    kind = getattr(torch, dtype)
    nbytes = 2 * (m * k + n * k + m * n)
    sets = input_sets(nbytes)
    torch.manual_seed(k)
    xs = [torch.randn(m, k, device="cuda", dtype=kind) for _ in range(sets)]
    ws = [torch.randn(n, k, device="cuda", dtype=kind) for _ in range(sets)]
    outs = [torch.full((m, n), float("nan"), device="cuda", dtype=kind) for _ in range(sets)]
    fused = mf.fuse(product)
    torch.cuda.synchronize()
    start = time.perf_counter()
    fused(xs[0], ws[0], out=outs[0])
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    contestants = [
        Contestant(CUBLAS, lambda i: torch.mm(xs[i], ws[i].T, out=outs[i])),
        Contestant(MLIRFUSE, lambda i: fused(xs[i], ws[i], out=outs[i])),
    ]
    contest = run_contest(contestants, sets, nbytes, ROUNDS)
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    speed = contest.speed(MLIRFUSE, CUBLAS)
    return Row(m, n, k, dtype, times, speed, contest.failures, first, _errors(fused, xs[0], ws[0]))


def _errors(fused: mf.Fused, x: Any, w: Any) -> dict[str, float]:
    rows = x[:: max(1, x.shape[0] // 64)]
    exact = rows.double() @ w.double().T
    picked = slice(None, None, max(1, x.shape[0] // 64))
    results = {CUBLAS: x @ w.T, MLIRFUSE: fused(x, w)}
    return {name: ((y[picked].double() - exact).abs().max() / exact.abs().max()).item() for name, y in results.items()}


def measure_host() -> float:
    """Host time of a warm call on small operands, microseconds."""
    import torch

    x, w = (torch.randn(64, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
    fused = mf.fuse(product)
    return host_us({"warm": lambda: fused(x, w, out=out)}, torch.cuda.synchronize)["warm"]


def measure_epilogue(m: int, n: int, k: int) -> dict[str, float]:
    """Microseconds of a product alone, and of one with a bias and an activation."""
    import torch

    nbytes = 2 * (m * k + n * k + m * n)
    sets = input_sets(nbytes)
    xs, ws = ([torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)] for rows in (m, n))
    outs = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    bias = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    bare, fused = mf.fuse(product), mf.fuse(with_epilogue)
    contestants = [
        Contestant("product", lambda i: bare(xs[i], ws[i], out=outs[i])),
        Contestant("product, bias, GELU", lambda i: fused(xs[i], ws[i], bias, out=outs[i])),
    ]
    contest = run_contest(contestants, sets, nbytes, ROUNDS)
    return {name: timing.microseconds for name, timing in contest.timings.items()}


def measure_split(m: int, n: int, k: int) -> dict[str, float]:
    """Microseconds of a product whose split parts meet in its kernel, and of one of parts with a kernel that adds."""
    import torch

    given = ContractionProblem((), m, n, k, mf.bfloat16, mf.float32, row_bytes=16)
    chosen = choose_contraction(given, target_of("sm_90a"), machine_of("sm_90a")).contraction
    assert chosen is not None
    assert chosen.split > 1  # SPLIT_SHAPES are such
    nbytes = 2 * (m * k + n * k + m * n)
    sets = input_sets(nbytes)
    xs, ws = ([torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)] for rows in (m, n))
    outs = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    halves = [torch.empty(chosen.split, m, n, device="cuda", dtype=torch.float32) for _ in range(sets)]
    whole, parts, add = mf.fuse(product), mf.fuse(parts_of(chosen.split)), mf.fuse(add_parts)
    contestants = [
        Contestant("one kernel", lambda i: whole(xs[i], ws[i], out=outs[i])),
        Contestant("two kernels", lambda i: add(parts(xs[i], ws[i], out=halves[i]), out=outs[i])),
    ]
    contest = run_contest(contestants, sets, nbytes, ROUNDS)
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    console.print(f"{m}x{n}x{k}, split by {chosen.split}: {times} {contest.failures or ''}", highlight=False)
    return times


def checks(
    rows: list[Row], host: float, epilogue: dict[str, float], splits: dict[str, dict[str, float]]
) -> list[Check]:
    """The targets of contractions, for what was measured."""
    found = [at_most("host time of a warm call, us", host, HOST_LIMIT_US)]
    for name, times in splits.items():
        speed = times["two kernels"] / times["one kernel"]
        found.append(at_least(f"{name}: a split in one kernel, speed of two", speed, 1.1))
    bare, fused = epilogue.values()
    found.append(at_most("bias and GELU behind a product: time of the product alone", fused / bare, 1.03))
    for row in rows:
        name = f"{row.m}x{row.n}x{row.k} {row.dtype}"
        if row.speed is None:
            continue
        found.append(at_least(f"{name}: speed of cuBLAS", row.speed, 1.0))
        found.append(at_most(f"{name}: first call, s", row.first_call_seconds, FIRST_CALL_LIMIT_S))
        found.append(at_most(f"{name}: error of cuBLAS", row.error[MLIRFUSE] / max(row.error[CUBLAS], 1e-12), 2.0))
        if (row.m, row.n, row.k) in MEMORY_BOUND and row.nbytes > STREAMS_FROM_BYTES:
            share = row.terabytes(MLIRFUSE) * 1e12 / STREAM_BYTES_PER_SECOND
            found.append(at_least(f"{name}: share of a stream", share, 0.85))
    streamed = [row.speed for row in rows if (row.m, row.n, row.k) in MEMORY_BOUND and row.speed is not None]
    if streamed:
        found.append(at_least("memory-bound products: speed of cuBLAS, geomean", geomean(streamed), 1.25))
    return found


def table_of(rows: list[Row]) -> Table:
    """Times, speeds and errors."""
    table = Table(title="x[M, K] @ w[N, K].T", title_justify="left")
    columns = ("M", "N", "K", "dtype", "cuBLAS us", "mlirfuse us", "speed", "TFLOP/s", "TB/s", "error", "first s")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        extents = [str(row.m), str(row.n), str(row.k), row.dtype]
        if row.speed is None:
            table.add_row(*extents, *(str(row.failures.get(name, "-"))[:60] for name in (CUBLAS, MLIRFUSE)))
            continue
        times = [f"{row.microseconds[name]:.1f}" for name in (CUBLAS, MLIRFUSE)]
        rates = [f"{row.speed:.3f}", f"{row.teraflops(MLIRFUSE):.0f}", f"{row.terabytes(MLIRFUSE):.2f}"]
        error = f"{row.error[MLIRFUSE] / max(row.error[CUBLAS], 1e-12):.2f}x"
        table.add_row(*extents, *times, *rates, error, f"{row.first_call_seconds:.2f}")
    return table


def run(options: argparse.Namespace) -> int:
    """Measures, prints, writes; returns 1 where a target is missed."""
    start = time.perf_counter()
    # Passes are imported when they first run; a first call is timed without imports.
    mf.fuse(product).lower(*[mf.TensorSpec((64, 64), "bfloat16")] * 2).compile()
    rows = []
    host = measure_host()
    for dtype in options.dtypes:
        for m, n, k in options.shapes:
            row = measure(m, n, k, dtype)
            rows.append(row)
            release_memory()
            speed = "no time" if row.speed is None else f"{row.speed:.3f} of cuBLAS"
            console.print(f"{time.perf_counter() - start:6.1f} s  {m}x{n}x{k} {dtype}  {speed}", highlight=False)
    epilogue = measure_epilogue(*EPILOGUE_SHAPE)
    splits = {f"{m}x{n}x{k}": measure_split(m, n, k) for m, n, k in SPLIT_SHAPES}
    found = checks(rows, host, epilogue, splits)
    console.print(table_of(rows))
    console.print(check_table(found))
    options.out.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": machine(),
        "host_microseconds": host,
        "epilogue_microseconds": epilogue,
        "split_microseconds": splits,
        "rows": [asdict(row) for row in rows],
    }
    data["checks"] = [asdict(check) for check in found]
    (options.out / "matmul.json").write_text(json.dumps(data, indent=1) + "\n")
    return int(any(row.speed is None for row in rows) or not all(check.passed for check in found))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    options = parse_arguments(arguments)
    if problem := missing():
        console.print(problem)
        return 2
    return run(options)


if __name__ == "__main__":
    sys.exit(main())

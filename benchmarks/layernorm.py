"""Row-wise kernels against a copy of the same bytes, PyTorch and quack: GPU time, first call, host time, accuracy.

    python benchmarks/layernorm.py [--only layernorm|rows|host] [--sizes 4096,5140] [--skip-peers] [--out DIR]

`layernorm` is half(half(x + b0) + b1) -> LayerNorm -> w, b over 8192 rows; `rows` is RMSNorm, softmax and log-softmax
with x of 256 MB; `host` is the host time of a warm call. All in float16. Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fusions import DOUBLE, EPSILON, FUSED, PARAMETERS, TORCH
from layernorm_targets import checks
from machine import machine, missing
from report import (
    MEMCPY,
    MLIRFUSE,
    Accuracy,
    Measurement,
    Results,
    check_table,
    measurement_table,
    write_json,
    write_plot,
)
from rich.console import Console
from rich.table import Table
from timing import Contestant, host_us, input_sets, release_memory, run_contest

import mlirfuse as mf
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import load

ROWS = 8192
SIZES = (768, 1024, 1280, 1536, 1600, 2048, 2560, 4096, 5140, 12288, 16384, 20480)
ROW_BYTES = 2**28
ROW_SIZES = (1000, 4096, 5140, 16384, 32768, 65536, 131072)
ROW_KERNELS = ("rms_norm", "softmax", "log_softmax")
PARTS = ("layernorm", "rows", "host")
CHECKED_ROWS = 256
HOST_SHAPE = (8, 4096)
RESULTS = Path(__file__).parent / "results"
_DEVICE_TO_DEVICE = 3  # cudaMemcpyKind

console = Console(width=160)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; `only` becomes a tuple of parts, `sizes` a tuple of ints or None."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be repeated; all by default")
    parser.add_argument("--sizes", type=_sizes, help="columns, comma-separated, instead of each part's own")
    parser.add_argument("--skip-peers", action="store_true", help="time only memcpy and mlirfuse")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for layernorm.json and layernorm.png")
    options = parser.parse_args(arguments)
    options.only = tuple(options.only or PARTS)
    return options


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError("sizes are positive")
    return sizes


def quack_layer_norm() -> Callable[..., Any] | None:
    """quack's LayerNorm forward, or None with a printed reason."""
    try:
        from quack.rmsnorm import layernorm_fwd
    except Exception as error:  # noqa: BLE001  # a peer that does not import must not end the run; it is reported
        console.print(f"without quack: {type(error).__name__}: {error}")
        return None
    return layernorm_fwd


def make_inputs(kernel: str, rows: int, columns: int, sets: int) -> tuple[list[Any], list[Any]]:
    """x of every set, and the vectors, which all sets share."""
    import torch

    torch.manual_seed(columns)
    xs = [torch.randn(rows, columns, device="cuda", dtype=torch.float16) for _ in range(sets)]
    return xs, [torch.randn(columns, device="cuda", dtype=torch.float16) for _ in range(PARAMETERS[kernel])]


def measure(kernel: str, rows: int, columns: int, peers: bool, quack: Callable[..., Any] | None) -> Measurement:
    """Times one function at one size against a copy, and against its peers where asked."""
    import torch

    nbytes = rows * columns * 2
    sets = input_sets(nbytes)
    xs, vectors = make_inputs(kernel, rows, columns, sets)
    outs = [torch.empty_like(x) for x in xs]
    copy = cuda.cupy().cuda.runtime.memcpyAsync
    fused = mf.fuse(FUSED[kernel])
    torch.cuda.synchronize()
    start = time.perf_counter()
    try:
        fused(xs[0], *vectors, out=outs[0])
    except mf.MlirFuseError as error:
        return Measurement(kernel, rows, columns, nbytes, {}, {MLIRFUSE: str(error)[:200]})
    torch.cuda.synchronize()
    first = time.perf_counter() - start

    def memcpy(i: int) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        copy(outs[i].data_ptr(), xs[i].data_ptr(), nbytes, _DEVICE_TO_DEVICE, stream)

    contestants = [
        Contestant(MEMCPY, memcpy),
        Contestant(MLIRFUSE, lambda i: fused(xs[i], *vectors, out=outs[i])),
    ]
    if kernel == "layernorm":
        contestants.append(Contestant("mlirfuse, no graph", contestants[1].call, in_graph=False))
    if peers:
        torch._dynamo.reset()  # it compiles at most 8 signatures of one function, and then falls back to eager
        compiled = torch.compile(TORCH[kernel], dynamic=False)
        contestants += [
            Contestant("torch.compile", lambda i: compiled(xs[i], *vectors)),
            Contestant("torch eager", lambda i: TORCH[kernel](xs[i], *vectors)),
            Contestant("torch copy_", lambda i: outs[i].copy_(xs[i])),
        ]
        if quack is not None:
            weight, bias = vectors[2].float(), vectors[3].float()
            contestants.append(Contestant("quack", lambda i: quack(xs[i], weight, bias, EPSILON)))
    with torch.no_grad():
        contest = run_contest(contestants, sets, nbytes)
    times = {name: timing.microseconds for name, timing in contest.timings.items()}
    return Measurement(kernel, rows, columns, nbytes, times, contest.failures, first)


def check(kernel: str, rows: int, columns: int) -> Accuracy:
    """Errors of some first and last rows against float64; run after all timing."""
    import torch

    xs, vectors = make_inputs(kernel, rows, columns, 1)
    out = torch.full_like(xs[0], float("nan"))
    mf.fuse(FUSED[kernel])(xs[0], *vectors, out=out)
    some = torch.cat([torch.arange(min(CHECKED_ROWS, rows)), torch.arange(max(0, rows - CHECKED_ROWS), rows)]).cuda()
    x = xs[0][some]
    reference = DOUBLE[kernel](x, *vectors)
    error = (out[some].double() - reference).abs().max().item()
    torch_error = (TORCH[kernel](x, *vectors).double() - reference).abs().max().item()
    return Accuracy(kernel, columns, error, torch_error)


def measure_host() -> dict[str, float]:
    """Host time of a warm call of the fused LayerNorm, by way of calling it, and of a bare launch of its kernel."""
    import torch

    cupy = cuda.cupy()
    fused = mf.fuse(FUSED["layernorm"], target=cuda.chip(0))
    random = np.random.default_rng(0)
    shapes = [HOST_SHAPE, *[HOST_SHAPE[1:]] * PARAMETERS["layernorm"]]
    arrays = [cupy.asarray(random.standard_normal(shape).astype(np.float16)) for shape in shapes]
    out = cupy.empty_like(arrays[0])
    tensors = [torch.as_tensor(array, device="cuda") for array in arrays]
    tensor_out = torch.empty_like(tensors[0])
    calls = {
        "bare CuPy launch": _bare_launch(fused, arrays, out),
        "mlirfuse, out=, CuPy": lambda: fused(*arrays, out=out),
        "mlirfuse, out=, torch": lambda: fused(*tensors, out=tensor_out),
        "mlirfuse, new output, CuPy": lambda: fused(*arrays),
        "mlirfuse, new output, torch": lambda: fused(*tensors),
        "torch.add, out=": lambda: torch.add(tensors[0], tensors[1], out=tensor_out),
    }
    return host_us(calls, cupy.cuda.runtime.deviceSynchronize)


def _bare_launch(fused: mf.Fused, arrays: list[Any], out: Any) -> Callable[[], None]:
    """Launches the kernel as CuPy's users do, with its parameters already gathered."""
    compiled = fused.lower(*arrays).compile()
    name, info = next(iter(compiled.infos.items()))
    kernel = load(compiled.binaries[name], info, out.data.device_id)
    function = kernel.owner.get_function(info.name)  # type: ignore[attr-defined]
    operands = [*arrays, out]
    values = [
        operands[p.arg] if p.kind == "pointer" else np.int64(operands[p.arg].shape[p.dim]) for p in info.parameters
    ]
    blocks = info.blocks([operand.shape for operand in operands])
    parameters, shared = tuple(values), info.dynamic_shared_bytes
    return lambda: function((blocks,), (info.block,), parameters, shared_mem=shared)


def run(options: argparse.Namespace) -> int:
    """Measures, prints, writes; returns 1 where a target is missed."""
    start = time.perf_counter()
    results = Results(machine())
    options.out.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, int, int]] = []
    if "layernorm" in options.only:
        jobs += [("layernorm", ROWS, n) for n in options.sizes or SIZES]
    if "rows" in options.only:
        jobs += [(kernel, max(1, ROW_BYTES // 2 // n), n) for kernel in ROW_KERNELS for n in options.sizes or ROW_SIZES]
    # Passes are imported when they first run; a first call is timed without imports.
    mf.fuse(FUSED["softmax"]).lower(mf.TensorSpec((None, 8), mf.float16)).compile()
    if "host" in options.only:
        results.host_microseconds.update(measure_host())
    quack = None if options.skip_peers or "layernorm" not in options.only else quack_layer_norm()
    for kernel, rows, columns in jobs:
        peers = kernel == "layernorm" and not options.skip_peers
        m = measure(kernel, rows, columns, peers, quack)
        results.measurements.append(m)
        release_memory()
        ratio = m.ratio(MLIRFUSE)
        console.print(
            f"{time.perf_counter() - start:6.1f} s  {kernel} {rows} x {columns}  "
            f"{'no time' if ratio is None else f'{ratio:.3f} of memcpy'}  {m.failures or ''}",
            highlight=False,
        )
    write_json(results, checks(results), options.out / "layernorm.json")
    for m in results.measurements:
        if MLIRFUSE in m.microseconds:
            results.accuracy.append(check(m.kernel, m.rows, m.columns))
            release_memory()
    return report(results, options.out)


def report(results: Results, out: Path) -> int:
    """Prints tables, writes JSON and the plot; returns 1 where a target is missed or a number is missing."""
    console.print(" ".join(f"{key} {value}" for key, value in results.machine.items()), highlight=False)
    for title, measurements in (
        ("LayerNorm with fused adds, 8192 rows, float16", results.of("layernorm")),
        ("Rows of 256 MB, float16", results.of(*ROW_KERNELS)),
    ):
        if measurements:
            console.print(measurement_table(title, measurements))
    if results.host_microseconds:
        table = Table("host time of a warm call", "us")
        for name, value in results.host_microseconds.items():
            table.add_row(name, f"{value:.2f}")
        console.print(table)
    found = checks(results)
    console.print(check_table(found))
    write_json(results, found, out / "layernorm.json")
    if results.measurements:
        try:
            write_plot(results, out / "layernorm.png")
        except ImportError as error:
            console.print(f"no plot: {error}")
    failed = any(m.ratio(MLIRFUSE) is None for m in results.measurements)
    return int(failed or not all(c.passed for c in found))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    options = parse_arguments(arguments)
    if problem := missing():
        console.print(problem)
        return 2
    return run(options)


if __name__ == "__main__":
    sys.exit(main())

"""Einsums of real models against torch.einsum, torch.compile, jax.jit(jnp.einsum) and cupy.einsum on one GPU.

    python benchmarks/einsum.py [--only REGEX] [--seconds T] [--others T] [--no-calls] [--jobs N] [--out DIR]

The equations stand in `survey_programs/einsums.py`. `survey.py` compiles, checks and times them cold, PyTorch's
contestants in the same rounds; JAX and CuPy then take turns over arrays that do not fit the L2, by wall-clock time over
many calls, so that the host's time counts where it is longer than the GPU's. The peer of an einsum is the fastest of
all. `einsum_calls.py` has the host time of warm calls and of views, and what first calls may take. Results go to
`einsum.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import survey
from einsum_calls import Limit, calls, first_call_limits, host_limits
from rich.console import Console
from survey_results import BYTES_PER_US, LARGE_BYTES, read_rows, share
from survey_workers import all_programs

GEOMEAN, LEAST = 1.3, 0.9
"""What the issue asks of the speeds against the fastest peer: of all of them, and of each."""

OF_DRAM = 0.8
"""The part of the memory's rate that an einsum should reach whose bytes take longest, from `LARGE_BYTES` on."""

CALLS = 30
console = Console(width=170)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose 'domain name' matches")
    parser.add_argument("--seconds", type=float, default=110.0, help="of the survey")
    parser.add_argument("--others", type=float, default=35.0, help="seconds of JAX and CuPy; 0 for none")
    parser.add_argument("--no-calls", action="store_true", help="leave the host time of warm calls out")
    parser.add_argument("--jobs", type=int, default=14, help="processes that compile")
    parser.add_argument("--out", type=Path, default=survey.RESULTS / "einsums", help="folder for the results")
    return parser.parse_args(arguments)


def other_peers(rows: Sequence[dict[str, Any]], seconds: float) -> None:
    """Adds the microseconds of JAX and CuPy to rows, those with the least lead first, until the time is over."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from survey_programs.draw import torch_arrays_of
    from timing import input_sets, release_memory

    programs = {program.name: program for program in all_programs(table="einsums")}
    until = time.monotonic() + seconds
    for row in sorted(rows, key=lead):
        if time.monotonic() > until:
            return
        program = programs[row["name"]]
        sets = [torch_arrays_of(program.arguments(), n) for n in range(input_sets(int(max(row["bytes"], 4e6))))]
        for name, start in (("jax", _jax), ("cupy", _cupy)):
            try:
                row["microseconds"][name] = start(row["name"].split()[0], sets)
            except Exception as error:  # noqa: BLE001  # a peer that refuses has no time
                row["failures"][name] = f"{type(error).__name__}: {str(error)[:100]}"
        del sets
        release_memory()


def _jax(equation: str, sets: Sequence[Sequence[Any]]) -> float:
    import jax
    import jax.numpy as jnp

    # by default JAX rounds float32 operands of products to TF32, which no other contestant does
    fn = jax.jit(lambda *arrays: jnp.einsum(equation, *arrays, precision=jax.lax.Precision.HIGHEST))
    given = [[jax.dlpack.from_dlpack(x) for x in arrays] for arrays in sets]
    return _wall(lambda n: fn(*given[n % len(given)]), jax.block_until_ready)


def _cupy(equation: str, sets: Sequence[Sequence[Any]]) -> float:
    import cupy

    given = [[cupy.asarray(x) for x in arrays] for arrays in sets]
    return _wall(
        lambda n: cupy.einsum(equation, *given[n % len(given)]), lambda _: cupy.cuda.get_current_stream().synchronize()
    )


def _wall(call: Callable[[int], Any], wait: Callable[[Any], Any]) -> float:
    """Microseconds of a call, the least mean of three runs of many."""
    wait([call(n) for n in range(3)])
    best = math.inf
    for _ in range(3):
        begin = time.perf_counter()
        wait([call(n) for n in range(CALLS)])
        best = min(best, (time.perf_counter() - begin) / CALLS)
    return 1e6 * best


def lead(row: dict[str, Any]) -> float:
    """The time of the fastest peer over mlirfuse's; infinite where one has no time."""
    times = row.get("microseconds") or {}
    peers = [t for name, t in times.items() if name != "mlirfuse"]
    return min(peers) / times["mlirfuse"] if peers and times.get("mlirfuse") else math.inf


def report(rows: Sequence[dict[str, Any]], path: Path, limits: Sequence[Limit] = ()) -> int:
    """Prints and writes all rows, the slowest against its peer first; returns 1 where a target is missed."""
    timed = sorted((row for row in rows if lead(row) < math.inf), key=lead)
    for row in timed:
        own = row["microseconds"]["mlirfuse"]
        peers = {n: t for n, t in row["microseconds"].items() if n != "mlirfuse"}
        best = min(peers, key=lambda n: peers[n])
        of_dram = row["bytes"] / BYTES_PER_US["H200"] / own
        wrong = "  WRONG" if row.get("wrong") else ""
        text = f"{lead(row):6.2f}  {own:8.1f} us  {best} {peers[best]:8.1f}  {of_dram:4.2f} of memory"
        console.print(f"{text}  {row.get('kernels')} kernel(s)  {row['name']}{wrong}", highlight=False, markup=False)
    slow = [row["name"] for row in timed if lead(row) < LEAST]
    geomean = math.exp(sum(math.log(lead(row)) for row in timed) / max(1, len(timed)))
    wrong = [row["name"] for row in rows if row.get("wrong")]
    console.print(f"geomean {geomean:.2f} of {len(timed)}; below {LEAST}: {len(slow)}; wrong: {wrong}", highlight=False)
    large = [row for row in timed if row.get("bound") == "bytes" and row["bytes"] >= LARGE_BYTES]
    below = [row["name"] for row in large if (share(row) or 0.0) < OF_DRAM]
    console.print(f"bound by memory: {len(large)}; below {OF_DRAM} of it: {below}", highlight=False, markup=False)
    limits = [*limits, *first_call_limits(rows)]
    for limit in limits:
        if not limit.holds:
            text = f"{limit.name}: {limit.value:.2f} {limit.unit}, not {limit.most}"
            console.print(text, highlight=False, markup=False)
    lasting = [asdict(limit) for limit in limits if not limit.name.startswith("first call: ") or not limit.holds]
    content = {
        "geomean": geomean,
        "below": slow,
        "below_memory": below,
        "wrong": wrong,
        "calls": lasting,
        "rows": timed,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    held = all(limit.holds for limit in limits)
    return int(bool(slow or below or wrong) or geomean < GEOMEAN or not held)


def host_times() -> list[Limit]:
    """The host times of warm calls, with their targets."""
    from timing import host_us

    from mlirfuse.runtime.device import cuda

    measured = host_us(dict(calls(all_programs(table="einsums"))), cuda.cupy().cuda.runtime.deviceSynchronize)
    for name, us in measured.items():
        console.print(f"{us:6.2f} us  {name}", highlight=False, markup=False)
    return host_limits(measured)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    options = parse_arguments(arguments)
    chosen = ["--table", "einsums", "--only", options.only, "--seconds", str(options.seconds)]
    survey.main([*chosen, "--jobs", str(options.jobs), "--out", str(options.out)])
    rows = read_rows([options.out / "survey.jsonl"])
    if options.others:
        other_peers(rows, options.others)
    return report(rows, options.out / "einsum.json", [] if options.no_calls else host_times())


if __name__ == "__main__":
    sys.exit(main())

"""What first calls of the survey's programs cost before the kernels are loaded, stage by stage; needs no GPU.

    python benchmarks/first_calls.py [--only REGEX] [--every N] [--json FILE] [--repeat N]
                                     [--table einsums | --random N --seed S]
    python benchmarks/first_calls.py --compare BEFORE.json AFTER.json

A process that has compiled one kernel before compiles each program for arrays of its real extents on an H200. Seconds
are those of processors, of this process and the assemblers that it runs; kernels that are assembled at the same time
count one after the other. A busy machine's processors are slower: `--compare` divides by the seconds of a loop that is
timed before each program. It also compares schedules, and digests of the PTX.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from survey_programs.draw import traced
from survey_programs.program import Argument, Program
from survey_workers import all_programs

import mlirfuse as mf
from mlirfuse.compiler import compile as compiling
from mlirfuse.compiler import pipeline
from mlirfuse.lowering.ptx import cubin_cache
from mlirfuse.runtime.arrays.arrays import ArrayInfo
from mlirfuse.schedule.choice import choice, contraction_choice
from mlirfuse.schedule.reduction_parts import best_parts
from mlirfuse.support.dtypes import dtype_of
from mlirfuse.target import target_of

DEVICE, CHIP, SMS = "NVIDIA H200", "sm_90a", 132
ADDRESS = 1 << 32
PIPELINES = {
    pipeline.TO_KERNELS: "graph",
    pipeline.ASSIGN: "schedule",
    f"{pipeline.TILE},{pipeline.GPU}": "tile, gpu",
    pipeline.LOWER: "lower",
}
STAGES = ("trace", *PIPELINES.values(), "nvvm", "llvm", "ptxas")
LIMITS = {"first call": (0.5, 0.7, 1.0), "choosing": (0.03,)}
"""Seconds; the report counts the programs that take longer."""

console = Console(width=170)


def cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Stopwatch:
    """Adds up the seconds of functions, by stage, without those of stages inside."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside = list[float]()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts what runs inside for a stage."""
        begin = cpu_seconds()
        self._inside.append(0.0)
        try:
            yield
        finally:
            took = cpu_seconds() - begin
            self.seconds[name] += took - self._inside.pop()
            if self._inside:
                self._inside[-1] += took

    def watch(self, function: Callable[..., Any], name: Callable[..., str]) -> None:
        """Times a function in every module of mlirfuse that has it."""

        def timed(*arguments: Any, **named: Any) -> Any:
            with self.stage(name(*arguments)):
                return function(*arguments, **named)

        for module in [module for key, module in sys.modules.items() if key.startswith("mlirfuse")]:
            for attribute, value in list(vars(module).items()):
                if value is function:
                    setattr(module, attribute, timed)


def watched() -> Stopwatch:
    """A stopwatch for the stages of a compilation, and for `choosing`, which happens in several of them."""
    watch = Stopwatch()
    stages = {pipeline.stage(text, tuned=True): name for text, name in PIPELINES.items()}
    from mlirfuse.builder.trace import trace
    from mlirfuse.lowering.ptx.spills import resources_of

    watch.watch(trace, lambda *_: "trace")
    watch.watch(compiling.run_pipeline, lambda _, text: stages[text])
    watch.watch(compiling.to_nvvm, lambda *_: "nvvm")
    watch.watch(compiling.ptx, lambda *_: "llvm")
    compiling.without_spills.__defaults__ = (_assembling(watch, resources_of),)
    for function in (choice.choose_schedule, contraction_choice.choose_contraction, best_parts):
        watch.watch(function, lambda *_: "choosing")
    return watch


def _assembling(watch: Stopwatch, assemble: Callable[..., Any]) -> Callable[..., Any]:
    def timed(binaries: Sequence[Any]) -> Any:
        with watch.stage("ptxas"):
            return assemble(binaries)

    return timed


def array(argument: Argument) -> ArrayInfo:
    """An array of a C-contiguous argument, as a call sees it."""
    strides, step = [0] * len(argument.shape), 1
    for dim in reversed(range(len(argument.shape))):
        strides[dim] = step
        step *= argument.shape[dim]
    return ArrayInfo(ADDRESS, argument.shape, tuple(strides), dtype_of(argument.dtype), 0, "torch")


def first_call(program: Program, watch: Stopwatch) -> dict[str, Any]:
    """Compiles a program as its first call does; the seconds of each stage, and what was made."""
    from mlirfuse.api.argument_specs import gpu_specs

    arrays, target = [array(argument) for argument in program.arguments()], target_of(CHIP).with_sms(SMS)
    fused = mf.fuse(traced(program, mf))
    gc.collect()
    steps = yardstick()
    watch.seconds.clear()
    wall, begin = time.perf_counter(), cpu_seconds()
    try:
        compiled = fused._compile(lambda extents: gpu_specs(arrays, extents), target, DEVICE)
    except Exception as error:  # noqa: BLE001  # a program that is refused is a result; it is reported
        return {"name": program.name, "domain": program.domain, "failed": f"{type(error).__name__}: {error}"}
    total, wall = cpu_seconds() - begin, time.perf_counter() - wall
    texts = [binary.ptx for binary in compiled.binaries.values()]
    return {
        "name": program.name,
        "domain": program.domain,
        "seconds": total,
        "wall_seconds": wall,
        "yardstick": steps,
        "stages": dict(watch.seconds),
        "kernels": len(texts),
        "again": {name: len(tried) for name, tried in compiled.attempts.items()},
        "ptx_lines": [text.count("\n") for text in texts],
        "schedules": {name: str(schedule) for name, schedule in compiled.schedules.items()},
        "ptx": sha256("\0".join(texts).encode()).hexdigest()[:16],
    }


def yardstick() -> float:
    """Seconds of a fixed number of steps of the interpreter: how fast the processor is now."""
    kept, begin = dict[int, tuple[int, int]](), time.process_time()
    for n in range(100_000):
        kept[n % 97] = n, min(n, 3)
    return time.process_time() - begin


def geomean(values: Iterable[float]) -> float:
    """The geometric mean; NaN of nothing."""
    logs = [math.log(max(value, 1e-9)) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def choosing(row: dict[str, Any]) -> float:
    """Seconds of proposing and predicting."""
    return float(row["stages"].get("choosing", 0.0))


def report(rows: Sequence[dict[str, Any]], slowest: int) -> None:
    """Prints the summary and the slowest programs."""
    made = [row for row in rows if "seconds" in row]
    for row in rows:
        if "failed" in row:
            console.print(f"refused: {row['name']}: {row['failed']}", markup=False, highlight=False)
    table = Table("seconds", "total", "choosing", *STAGES, "kernels", "again", "lines of PTX")
    for row in sorted(made, key=lambda row: -row["seconds"])[:slowest]:
        table.add_row(row["name"], *_cells(row))
    console.print(table)
    if not made:
        return
    for name, value in (("first call", lambda row: row["seconds"]), ("choosing", choosing)):
        values = [value(row) for row in made]
        over = ", ".join(f"{sum(v > limit for v in values)} over {limit} s" for limit in LIMITS[name])
        spread = f"geomean {geomean(values):.3f} s, maximum {max(values):.3f} s"
        console.print(f"{name}: {len(values)} programs, {spread}, {over}", highlight=False)
    total = sum(row["seconds"] for row in made)
    parts = {s: sum(row["stages"].get(s, 0.0) for row in made) / total for s in (*STAGES, "choosing")}
    console.print("; ".join(f"{name} {part:.0%}" for name, part in parts.items()), highlight=False)


def _cells(row: dict[str, Any]) -> list[str]:
    stages = row["stages"]
    seconds = [row["seconds"], choosing(row), *(stages.get(stage, 0.0) for stage in STAGES)]
    counts = [row["kernels"], sum(row["again"].values()), sum(row["ptx_lines"])]
    return [*(f"{value:.3f}" for value in seconds), *map(str, counts)]


def compare(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> int:
    """Prints what two runs differ in; 1 where schedules or PTX do."""
    known = {row["name"]: row for row in before}
    pairs = [(known[row["name"]], row) for row in after if row["name"] in known]
    differ = 0
    for old, new in pairs:
        for key in ("schedules", "again", "ptx", "failed"):
            if old.get(key) != new.get(key):
                differ = 1
                console.print(f"{new['name']}: another {key}", markup=False, highlight=False)
                break
    made = [(old, new) for old, new in pairs if "seconds" in old and "seconds" in new]
    speed = sum(row["yardstick"] for pair in made for row in pair) / (2 * len(made))
    for name, value in (("first call", lambda row: row["seconds"]), ("choosing", choosing)):
        a, b = ([value(row) * speed / row["yardstick"] for row in side] for side in zip(*made, strict=True))
        console.print(
            f"{name}: {len(a)} programs, geomean {geomean(a):.3f} to {geomean(b):.3f} s, maximum {max(a):.3f} to "
            f"{max(b):.3f} s, sum {sum(a):.2f} to {sum(b):.2f} s"
        )
    return differ


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="programs whose 'domain name' matches")
    parser.add_argument("--table", choices=("table", "einsums"), default="table", help="the module of programs")
    parser.add_argument("--random", type=int, default=0, help="that many random programs instead of the table")
    parser.add_argument("--seed", type=int, default=0, help="of random programs")
    parser.add_argument("--every", type=int, default=1, help="each N-th program")
    parser.add_argument("--repeat", type=int, default=1, help="the fastest of that many first calls")
    parser.add_argument("--slowest", type=int, default=10, help="programs to print")
    parser.add_argument("--json", type=Path, help="where to keep the rows")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="only compare two runs")
    options = parser.parse_args(arguments)
    if options.compare:
        return compare(*(json.loads(path.read_text()) for path in options.compare))
    os.environ[cubin_cache.VARIABLE] = "off"
    known = all_programs(options.random, options.seed, options.table)
    programs = [p for p in known if options.only.search(f"{p.domain} {p.name}")]
    watch = watched()
    first_call(Program("", lambda xp, x: x + 1, "x:f32[R,C]", {"R": 8, "C": 8}, label="warm"), watch)
    rows = list[dict[str, Any]]()
    for program in programs[:: options.every]:
        found = []
        for _ in range(options.repeat):
            forget()
            found.append(first_call(program, watch))
        rows.append(min(found, key=lambda row: row.get("seconds", 0.0)))
        console.print(f"{rows[-1].get('seconds', math.nan):.3f} {program.name}", markup=False, highlight=False)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    report(rows, options.slowest)
    return 0


def forget() -> None:
    """Empties the caches of choices and assembled kernels, which first calls of another program would not fill."""
    for module in [module for key, module in sys.modules.items() if key.startswith("mlirfuse.schedule")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear") and getattr(value, "__module__", "").startswith("mlirfuse.schedule"):
                value.cache_clear()
    from mlirfuse.lowering.ptx.assembler import _assembled
    from mlirfuse.support.recent import forget_recent

    forget_recent()
    _assembled.cache_clear()


if __name__ == "__main__":
    sys.exit(main())

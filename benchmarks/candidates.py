"""Measures the candidates of every family: what the cost model is compared with.

    python benchmarks/candidates.py [--table table | einsums] [--only REGEX] [--most N] [--best N] [--jobs N]
                                    [--seconds T] [--out FILE]

Of each program (`candidate_programs.py`, or a table of the survey's) the chosen schedule and a sample of all candidates
are compiled and timed, cold. Workers compile side by side, and take turns on the GPU. Writes a line of JSON for each:
the program, its scheduling problem, the schedule, microseconds, registers and bytes of the stack. `prediction.py` reads
them.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from candidate_programs import Program, programs

PRODUCT = "product"
COLD_BYTES, MOST_SETS = 192 << 20, 48
"""Bytes of all sets of arguments: more than the L2 holds; and sets, at most."""


def main() -> int:
    """Starts the workers, and gathers what they write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose text matches")
    parser.add_argument("--table", choices=("table", "einsums"), help="programs of the survey's instead")
    parser.add_argument("--most", type=int, default=24, help="candidates of a program, at most")
    parser.add_argument("--best", type=int, default=0, help="of these, how many are the fastest by prediction")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=300, help="time after which no candidate is begun")
    parser.add_argument("--out", type=Path, default=Path("candidates.jsonl"), help="file of results")
    parser.add_argument("--worker", type=int, default=-1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker >= 0:
        return _work(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, *sys.argv[1:]]
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("UUID")
    environments = [os.environ | {"CUDA_VISIBLE_DEVICES": str(i % gpus)} for i in range(options.jobs)]
    workers = [subprocess.Popen([*command, "--worker", str(i)], env=e) for i, e in enumerate(environments)]
    for worker in workers:
        worker.wait()
    parts = [Path(f"{options.out}.{i}") for i in range(options.jobs)]
    options.out.write_text("".join(part.read_text() for part in parts if part.exists()))
    for part in parts:
        part.unlink(missing_ok=True)
    print(f"{len(options.out.read_text().splitlines())} lines in {options.out}")
    return 0


def _work(options: argparse.Namespace) -> int:
    """The programs of one worker: each is claimed by creating a file."""
    end = time.monotonic() + options.seconds
    claims = Path(f"{options.out}.claims")
    claims.mkdir(exist_ok=True)
    chosen = [p for p in (surveyed(options.table) if options.table else programs()) if re.search(options.only, str(p))]
    random.Random(0).shuffle(chosen)
    with open(f"{options.out}.{options.worker}", "w") as out:
        for number, program in enumerate(chosen):
            if time.monotonic() > end:
                break
            try:
                (claims / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            for entry in _measured(program, options.most, options.best, end):
                out.write(json.dumps({"program": str(program)} | entry) + "\n")
                out.flush()
    return 0


def surveyed(table: str) -> Iterator[Program]:
    """The programs of a table of the survey's."""
    from survey_programs.draw import traced
    from survey_workers import all_programs

    import mlirfuse as mf

    for each in all_programs(table=table):
        arguments = each.arguments()
        shapes, dtypes = tuple(a.shape for a in arguments), tuple(a.dtype for a in arguments)
        yield Program(each.name, traced(each, mf), shapes, dtypes, tuple(a.values for a in arguments))


def _measured(program: Program, most: int, best: int, end: float) -> Iterator[dict[str, Any]]:
    """The chosen schedules of a program, and a sample of its kernel's candidates if it has one kernel."""
    import mlirfuse as mf
    from mlirfuse.compiler.problems import problems_of
    from mlirfuse.schedule.choice.records import RecordKey
    from mlirfuse.support.serialization import to_plain

    try:
        with _turn():
            sets = _arguments(program)
        fused = mf.fuse(program.fn)
        entry = _timed(fused, sets)
    except Exception as error:  # noqa: BLE001  # one program must not end the run
        yield {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        return
    compiled = next(reversed(fused._compiled.values()))
    lowered = compiled.lowered
    found = problems_of(lowered)
    texts = [{"kind": _kind(problem), "problem": _plain(problem), "kernel": name} for name, problem in found.items()]
    yield {"chosen": True, "kernels": texts} | entry
    if len(found) != 1:
        return
    (problem,) = found.values()
    kind, key = _kind(problem), RecordKey(problem, lowered.target, lowered.device)
    every = list(_candidates(kind, problem, lowered.target))
    if best:
        fastest = _fastest(problem, every, program, lowered)[:best]
        sample = dict.fromkeys((*fastest, *_sample(every, most - best)))
    else:
        sample = dict.fromkeys(_sample(every, most))
    for family, schedule in sample:
        if time.monotonic() > end:
            return
        known = {"kind": kind, "family": family, "problem": _plain(problem), "schedule": to_plain(schedule)}
        known["shapes"] = program.shapes
        try:
            with _forced(key, schedule):
                yield known | _timed(mf.fuse(program.fn), sets)
        except Exception as error:  # noqa: BLE001
            yield known | {"error": f"{type(error).__name__}: {str(error)[:200]}"}


def _arguments(program: Program) -> list[list[Any]]:
    """Sets of random arrays that do not fit the L2 together."""
    from survey_programs.draw import cupy_arrays_of
    from survey_programs.program import Argument

    values = program.values or ("",) * len(program.shapes)
    arguments = zip(program.dtypes, program.shapes, values, strict=True)
    first = cupy_arrays_of([Argument(f"a{n}", *each) for n, each in enumerate(arguments)])
    count = min(MOST_SETS, max(2, -(-COLD_BYTES // sum(a.nbytes for a in first))))
    return [first, *([a.copy() for a in first] for _ in range(count - 1))]


def _kind(problem: Any) -> str:
    from mlirfuse.schedule.problem import Problem

    return "rows" if isinstance(problem, Problem) else PRODUCT


def _candidates(kind: str, problem: Any, target: Any) -> Iterator[tuple[str, Any]]:
    from mlirfuse.schedule.choice.proposals import proposals
    from mlirfuse.schedule.contractions.candidates import candidates

    if kind == PRODUCT:
        for schedule in candidates(problem, target):
            yield schedule.contraction.instruction, schedule
        return
    for proposal in proposals(problem, target):
        yield proposal.family, proposal.schedule


def _sample(every: list[tuple[str, Any]], most: int) -> list[tuple[str, Any]]:
    """As many of each family, at random."""
    order = random.Random(1)
    families = {family: [e for e in every if e[0] == family] for family, _ in every}
    sample = []
    left = most
    for number, members in enumerate(sorted(families.values(), key=len)):
        count = min(len(members), left // (len(families) - number))
        sample += order.sample(members, count)
        left -= count
    return sample


def _fastest(problem: Any, every: list[tuple[str, Any]], program: Program, lowered: Any) -> list[tuple[str, Any]]:
    """The candidates, the fastest by prediction first."""
    from math import prod

    from mlirfuse.machine import machine_of
    from mlirfuse.schedule.choice.predicted import prediction_of, with_elements

    sized = with_elements(problem, max(prod(shape) for shape in program.shapes))
    machine = machine_of(lowered.target, lowered.device)
    return sorted(every, key=lambda each: prediction_of(each[1], sized, machine).microseconds)


def _timed(fused: Any, sets: Any) -> dict[str, Any]:
    """Microseconds of a call, and what the driver says of its kernels."""
    from mlirfuse.runtime import tuning
    from mlirfuse.runtime.device.module import driver_resources

    start = time.monotonic()
    _compile_only(fused, sets[0])
    seconds = time.monotonic() - start
    with _turn():
        us = tuning.measure(fused, sets)
    loaded = [kernel for kernels in fused._loaded.values() for kernel in kernels.values()]
    resources = [driver_resources(kernel) for kernel in loaded]
    return {
        "us": us,
        "compile_s": seconds,
        "registers": [r.registers for r in resources],
        "stack": [r.stack_bytes for r in resources],
    }


def _compile_only(fused: Any, arguments: Any) -> None:
    """Compiles before the GPU is taken; the first call inside of the turn launches only."""
    from mlirfuse.runtime.arrays.arrays import read_argument

    fused._prepare(tuple(read_argument(a, "candidates") for a in arguments))


@contextmanager
def _forced(key: Any, schedule: Any) -> Iterator[None]:
    """Makes the choice for a problem this schedule, and keeps it where it spills, which is measured too."""
    from mlirfuse.compiler import compile as compiling
    from mlirfuse.schedule.choice.records import on_trial

    kept = compiling.without_spills
    compiling.without_spills = lambda compile_once, *_: compile_once({})[0]
    try:
        with on_trial(key, schedule):
            yield
    finally:
        compiling.without_spills = kept


class _turn:  # noqa: N801
    """Whoever holds it has the GPU for itself."""

    def __enter__(self) -> None:
        self.file = open(f"/tmp/mlirfuse-turn-{os.environ.get('CUDA_VISIBLE_DEVICES', '0')}", "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        import cupy

        cupy.cuda.Device().synchronize()
        self.file.close()


def _plain(problem: Any) -> dict[str, Any]:
    """A scheduling problem as JSON."""
    import dataclasses

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if isinstance(value, tuple | list | frozenset | set):
            return [plain(v) for v in (sorted(value) if isinstance(value, frozenset | set) else value)]
        return value if isinstance(value, int | float | str | bool | None) else str(value)

    return plain(problem)


if __name__ == "__main__":
    sys.exit(main())

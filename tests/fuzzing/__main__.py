"""`python -m tests.fuzzing`: runs programs from seeds, and prints what became of them."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

from tests.fuzzing.generation.generator import PROFILES, program_from_seed
from tests.fuzzing.report import Report
from tests.fuzzing.running.backends import BACKENDS, PROFILE
from tests.fuzzing.running.check import CRASH, TIMEOUT, WRONG
from tests.fuzzing.running.pool import Pool
from tests.fuzzing.shrink import shrink


def main() -> int:
    options = _options()
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    profile = options.profile or PROFILE[options.backend]
    if options.show:
        print(program_from_seed(seed, profile).text)
        return 0
    report = Report(options.backend, profile, seed)
    started = time.monotonic()
    deadline = started + options.seconds
    print(f"{options.programs} programs from seed {seed} on {options.backend}", flush=True)
    environment = {
        "MLIRFUSE_CHECK_RESULTS": "1",
        "MLIRFUSE_CHECK_WORKSPACE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with Pool(options.jobs, options.limit, environment) as pool:
        numbers = options.only or range(seed, seed + options.programs)
        for number, outcome, text in pool.run(((n, (n, options.backend, profile)) for n in numbers), deadline):
            report.add(number, outcome, text)
            report.seconds = time.monotonic() - started
            if outcome.kind in (WRONG, CRASH, TIMEOUT) and not options.quiet:
                print(f"{number}: {outcome.kind}: {outcome.signature}", flush=True)
            if options.out and len(report.entries) % 50 == 0:
                report.write(options.out)
        if options.shrink:
            _shrink_all(pool, report, options.shrink_seconds)
    print(report.summary())
    for signature, text in report.reduced.items():
        print(f"\n# {signature}\n{text}")
    if options.out:
        report.write(options.out)
    return 1 if report.failures else 0


def _shrink_all(pool: Pool, report: Report, seconds: float) -> None:
    """One reproducer a signature."""
    for kind, signature, seeds in report.groups(WRONG, CRASH):
        smallest = min(seeds, key=lambda s: len(report.texts.get(s, "")))
        program = program_from_seed(smallest, report.profile)
        reduced, outcome = shrink(pool, program, report.backend, report.entries[smallest], seconds)
        message = outcome.message.strip().replace("\n", "\n# ")[:1500]
        report.reduced[f"{kind}: {signature}"] = f"# {message}\n{reduced.text}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--backend", choices=list(BACKENDS), default="interpret")
    parser.add_argument(
        "--profile", choices=list(PROFILES), help="how large programs are; by default what the backend takes"
    )
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, help="of the first program; the others count on. Random if left out")
    parser.add_argument("--only", type=int, nargs="+", help="these seeds and no others")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no program starts later than this")
    parser.add_argument("--limit", type=float, default=120, help="seconds a program may take")
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    parser.add_argument("--shrink", action="store_true", help="reduce one program of each signature")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="for each signature")
    parser.add_argument("--show", action="store_true", help="print the program of the seed and stop")
    parser.add_argument("--quiet", action="store_true", help="print no failure before the end")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

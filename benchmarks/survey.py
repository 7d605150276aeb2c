"""The survey: programs at real models' sizes, written before any was tuned for, against PyTorch on one GPU.

    python benchmarks/survey.py [--only REGEX] [--shard I/N] [--seconds T] [--jobs N] [--out DIR]
                                [--table einsums | --random N --seed S]
    python benchmarks/survey.py --merge RUN.jsonl ... [--out DIR]
    python benchmarks/survey.py --list

The programs stand in `survey_programs/table.py`; `--random` makes others from a seed. Each runs as written, by
mlirfuse, by eager PyTorch and by `torch.compile`, cold; its peer is the faster of the two. Many processes compile and
compare with double precision first, then one after the other measures. Rows go to `survey.jsonl` as they come; a later
run with the same folder, or with `--done`, leaves out what was measured. `survey.json` has the summary.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from report import check_table
from rich.console import Console
from survey_results import add_roofline, append_row, domain_table, program_table, read_rows, speed, summary, worst
from survey_targets import checks
from survey_workers import all_programs, run

MISSED = 20
"""Targets to print, of those that were missed."""

RESULTS = Path(__file__).parent / "results"
console = Console(width=170)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="programs whose 'domain name' matches")
    parser.add_argument("--table", choices=("table", "einsums"), default="table", help="the module of programs")
    parser.add_argument("--shard", type=_shard, default=(0, 1), help="each N-th program from the I-th on, such as 0/2")
    parser.add_argument("--seconds", type=float, default=3600.0, help="end in that time with what there is")
    parser.add_argument("--jobs", type=int, default=12, help="processes that compile; they share the GPU")
    parser.add_argument("--fusion-off", action="store_true", help='time mf.fuse(fusion="off") too')
    parser.add_argument("--random", type=int, default=0, help="that many random programs instead of the table")
    parser.add_argument("--seed", type=int, default=0, help="of random programs")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="rows of earlier runs, not measured again")
    parser.add_argument("--merge", type=Path, nargs="+", help="only summarise these runs")
    parser.add_argument("--list", action="store_true", help="print the programs and end")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for survey.jsonl and survey.json")
    return parser.parse_args(arguments)


def _shard(text: str) -> tuple[int, int]:
    index, count = map(int, text.split("/"))
    if not 0 <= index < count:
        raise argparse.ArgumentTypeError("I/N, with I from 0 to N - 1")
    return index, count


def chosen(options: argparse.Namespace) -> list[str]:
    """The names of the programs that the command line asks for."""
    names = [
        program.name
        for program in all_programs(options.random, options.seed, options.table)
        if options.only.search(f"{program.domain} {program.name}")
    ]
    index, count = options.shard
    return names[index::count]


def report(rows: list[dict[str, Any]], about: dict[str, str], path: Path) -> int:
    """Prints and writes the summary; returns 1 where a program has no time or a wrong result."""
    found = summary(rows)
    slow = [row for row in rows if (s := speed(row)) is not None and s < 1.0]
    console.print(program_table("slower than PyTorch", sorted(slow, key=lambda row: speed(row) or 0.0)))
    for name, failures in found["failed"].items():
        console.print(f"no time: {name}: {failures}", highlight=False, markup=False)
    for name in found["wrong"]:
        console.print(f"[bold red]wrong[/]: {name}")
    console.print(program_table("worst", worst(rows)))
    targets = checks(rows)
    missed = [check for check in targets if not check.passed]
    console.print(check_table([c for c in targets if c.passed or c in missed[:MISSED]]))
    console.print(f"{len(missed)} of {len(targets)} targets missed; the first {MISSED} stand above", highlight=False)
    console.print(domain_table(found))
    content = {"machine": about, "summary": found, "checks": [asdict(check) for check in missed], "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return int(bool(found["failed"] or found["wrong"]))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line."""
    options = parse_arguments(arguments)
    if options.list:
        console.print("\n".join(chosen(options)), highlight=False, markup=False)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    rows_path, summary_path = options.out / "survey.jsonl", options.out / "survey.json"
    if options.merge:
        return report(read_rows(options.merge), {}, summary_path)
    from machine import machine, missing

    if problem := missing():
        console.print(problem)
        return 2
    about = machine() | {"jobs": str(options.jobs)}
    earlier = [path for path in (*options.done, rows_path) if path.exists()]
    done = {row["name"] for row in read_rows(earlier) if speed(row) is not None}
    names = [name for name in chosen(options) if name not in done]
    begin = time.monotonic()

    def emit(row: dict[str, Any]) -> None:
        add_roofline(row, about["gpu"])
        append_row(rows_path, row)
        ratio = speed(row)
        said = "no time" if ratio is None else f"{ratio:5.2f}"
        trouble = f" wrong: {row['error']:.1e}" if row.get("wrong") else ""
        console.print(
            f"{time.monotonic() - begin:6.1f} s  {said}  {row['name']}{trouble}  {row['failures'] or ''}",
            highlight=False,
            markup=False,
        )

    console.print(f"{len(names)} programs, {len(done)} were measured before", highlight=False)
    if names:
        listing = options.random, options.seed, options.table
        run(names, listing, options.jobs, options.seconds, options.fusion_off, emit)
    measured = read_rows([path for path in (*options.done, rows_path) if path.exists()])
    if missed := set(names) - {row["name"] for row in measured}:
        console.print(f"{len(missed)} programs are left for another run", highlight=False)
    return report(measured, about, summary_path)


if __name__ == "__main__":
    sys.exit(main())

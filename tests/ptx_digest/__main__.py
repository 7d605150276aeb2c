"""`python -m ptx_digest`: digests of the PTX of all cases, and what differs between two of them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

from ptx_digest.compare import compared
from ptx_digest.digest import all_cases, digests, unpacked, versions


def main() -> int:
    """Runs the command; 1 where digests differ."""
    options = _options()
    if options.compare:
        before, after = (json.loads(path.read_text()) for path in options.compare)
        text, differ = compared(before, after)
        print(text)
        for path, found in zip(options.compare, (before, after), strict=True):
            if options.dump:
                _dump(found, options.dump / path.stem)
        return int(differ)
    names = [name for name in all_cases() if any(fnmatchcase(name, pattern) for pattern in options.only)]
    if options.list:
        print(*names, sep="\n")
        return 0
    found = {"commit": _commit(), "versions": versions(), "cases": _run(names, options.jobs)}
    if options.out:
        options.out.write_text(json.dumps(found, indent=0) + "\n")
    if options.dump:
        _dump(found, options.dump)
    return 0


def _run(names: list[str], jobs: int) -> dict[str, object]:
    records, started, shown = {}, time.monotonic(), 0.0
    for name, record in digests(names, jobs):
        records[name] = record
        if "error" in record:
            print(f"{name}: {record['error']}", flush=True)
        if time.monotonic() > shown + 20:
            shown = time.monotonic()
            print(f"{len(records)} of {len(names)} cases, {shown - started:.0f} s", flush=True)
    kernels = sum(len(record.get("kernels", ())) for record in records.values())
    errors = sum("error" in record for record in records.values())
    print(f"{kernels} kernels of {len(records)} cases, {errors} errors, {time.monotonic() - started:.0f} s")
    return {name: records[name] for name in names}


def _dump(found: dict, folder: Path) -> None:
    """A folder for each case, a file for each kernel; what ran before stays."""
    for name, record in found["cases"].items():
        for number, kernel in enumerate(record.get("kernels", ())):
            path = folder / name / f"{number}.ptx"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(unpacked(kernel["ptx"]))


def _commit() -> str:
    """The commit of the package that is digested, with a star where files of it were changed since."""
    import mlirfuse

    folder = Path(mlirfuse.__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=*", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ptx_digest", description=__doc__)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the digests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that compile")
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="cases of these names, such as 'rows-*'"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and stop")
    parser.add_argument(
        "--dump", type=Path, metavar="DIR", help="write the normalised PTX there, for other tools to compare"
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("BEFORE.json", "AFTER.json"),
        help="print what differs; compile nothing",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

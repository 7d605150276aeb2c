"""What `python -m tests.ptx_digest` does, once it is known which mlirfuse it is about."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import mlirfuse
from tests.ptx_digest.compare import compared
from tests.ptx_digest.digest import all_cases, digests, unpacked, versions


def run(options: argparse.Namespace) -> int:
    """Compares, lists or digests, as the options of `python -m tests.ptx_digest` say; 1 where digests differ."""
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
    found = _digested(names, options)
    if options.dump:
        _dump(found, options.dump)
    return 0


def _digested(names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """The digests; they are written every 20 seconds, so that a run that is ended can be resumed."""
    found: dict[str, Any] = {"commit": _commit(), "versions": versions(), "cases": {}}
    if options.resume and options.out.exists():
        earlier = json.loads(options.out.read_text())
        if (earlier["commit"], earlier["versions"]) != (found["commit"], found["versions"]):
            raise SystemExit(f"{options.out} is of {earlier['commit']} with {earlier['versions']}: leave out --resume")
        found["cases"] = {name: record for name, record in earlier["cases"].items() if name in names}
    records, started = found["cases"], time.monotonic()
    shown = started
    for name, record in digests([name for name in names if name not in records], options.jobs):
        records[name] = record
        if "error" in record:
            print(f"{name}: {record['error']}", flush=True)
        if time.monotonic() > shown + 20:
            shown = time.monotonic()
            print(f"{len(records)} of {len(names)} cases, {shown - started:.0f} s", flush=True)
            _write(found, options.out)
    found["cases"] = {name: records[name] for name in names}
    _write(found, options.out)
    kernels = sum(len(record.get("kernels", ())) for record in records.values())
    errors = sum("error" in record for record in records.values())
    print(f"{kernels} kernels of {len(records)} cases, {errors} errors, {time.monotonic() - started:.0f} s")
    return found


def _write(found: dict[str, Any], path: Path | None) -> None:
    """Writes the digests, whole or not at all."""
    if path:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found, indent=0) + "\n")
        part.replace(path)


def _dump(found: dict[str, Any], folder: Path) -> None:
    """A folder for each case, a file for each kernel; what ran before stays."""
    for name, record in found["cases"].items():
        for number, kernel in enumerate(record.get("kernels", ())):
            path = folder / name / f"{number}.ptx"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(unpacked(kernel["ptx"]))


def _commit() -> str:
    """The last commit that changed the package that is digested, with a star where its files are others now."""
    git = ["git", "-C", str(Path(mlirfuse.__file__).parent)]
    commands = (["log", "-1", "--format=%h", "--abbrev=12", "--", "."], ["status", "--porcelain", "--", "."])
    commit, changed = (
        subprocess.run([*git, *command], capture_output=True, text=True, check=False).stdout.strip()
        for command in commands
    )
    return f"{commit or 'unknown'}{'*' if changed else ''}"

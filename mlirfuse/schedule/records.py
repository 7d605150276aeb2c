"""Schedules that `mlirfuse tune` found to be the fastest, kept in a file on disk.

One entry a problem, a target with its SMs, the versions of mlirfuse and MLIR, and the fields of a schedule:
what a new version measures differently, or describes in another way, is not taken from an old one. The file is
`schedules.json` in the user's cache directory, or what `MLIRFUSE_RECORDS` names; `off` is none.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.serialization import fields_of, from_plain, to_plain
from mlirfuse.support.user_cache import OFF, cache_path
from mlirfuse.target import Target

VARIABLE = "MLIRFUSE_RECORDS"

PACKAGES = {"mlirfuse": "mlirfuse", "mlir": "xtc-mlir-python-bindings"}
"""What makes the code of a schedule, by the name in a record."""


@dataclass(frozen=True)
class Record:
    """A schedule and the time that was measured with it."""

    schedule: Schedule
    microseconds: float


def records_path() -> Path | None:
    """The file; None where records are switched off."""
    return cache_path(VARIABLE, "schedules.json")


def record_key(problem: ContractionProblem, target: Target) -> str:
    """What an entry is for, as text."""
    fields = [f"{name}={value}" for name, value in vars(problem).items()]
    versions = [f"{name}={_version(package)}" for name, package in PACKAGES.items()]
    return " ".join([*versions, f"schedule={_format()}", target.chip, f"sms={target.sms}", *fields])


@cache
def _format() -> str:
    """A checksum of a schedule's fields, which change from commit to commit while the version stays."""
    return f"{zlib.crc32(fields_of(Schedule).encode()):08x}"


def lookup(problem: ContractionProblem, target: Target) -> Record | None:
    """The entry of a problem, or None; raises `ScheduleError` where the file is not what `store` writes."""
    path = records_path()
    if path is None or not path.exists():
        return None
    entry = _read(path).get(record_key(problem, target))
    if entry is None:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("microseconds"), int | float):
        raise _broken(path, "an entry has no time")
    try:
        schedule = from_plain(Schedule, entry.get("schedule"))
    except ScheduleError as error:
        raise _broken(path, error.message) from error
    return Record(schedule, float(entry["microseconds"]))


def store(problem: ContractionProblem, target: Target, record: Record) -> None:
    """Adds or replaces an entry; other processes may do so at the same time."""
    from filelock import FileLock  # here, as it takes 15 ms, and only tuning stores anything

    path = records_path()
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        entries = _read(path) if path.exists() else {}
        plain = {"schedule": to_plain(record.schedule), "microseconds": record.microseconds}
        entries[record_key(problem, target)] = plain
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(entries, indent=1) + "\n")
        part.replace(path)


def _read(path: Path) -> dict[str, object]:
    try:
        entries = json.loads(path.read_text())
    except ValueError as error:
        raise _broken(path, str(error)) from error
    if not isinstance(entries, dict):
        raise _broken(path, "it is no object")
    return entries


def _broken(path: Path, reason: str) -> ScheduleError:
    return ScheduleError(
        f"the file of tuned schedules cannot be read: {reason}",
        where=str(path),
        hint=f"delete it, or set {VARIABLE}={OFF}",
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a directory
        return "unknown"

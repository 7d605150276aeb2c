"""Schedules that `mlirfuse tune` found to be the fastest, kept in a file on disk.

One entry a problem, a machine (the chip, its SMs, and the device's name where it is known), a requested combination of
partials, the versions of mlirfuse and MLIR, and the fields of a schedule: what a new version measures differently, or
describes in another way, is not taken from an old one. The file is `schedules.json` in the user's cache directory, or
what `MLIRFUSE_RECORDS` names; `off` is none.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.dtypes import DType
from mlirfuse.support.serialization import fields_of, from_plain, to_plain
from mlirfuse.support.user_cache import OFF, cache_path
from mlirfuse.target import Target

VARIABLE = "MLIRFUSE_RECORDS"

PACKAGES = {"mlirfuse": "mlirfuse", "mlir": "xtc-mlir-python-bindings"}
"""What makes the code of a schedule, by the name in a record."""

AnyProblem = Problem | ContractionProblem
"""What a kernel's schedule is chosen for: without contractions, or with one."""

_ON_TRIAL: ContextVar[Mapping[str, Schedule]] = ContextVar("schedules on trial", default={})  # noqa: B039  # no writes


@dataclass(frozen=True)
class RecordKey:
    """What an entry is for.

    Attributes:
        problem: the scheduling problem of a kernel.
        target: the architecture, with the device's SMs.
        device: the name that CUDA reports for the device; None where only the target is known.
        grid_reduction: how the function asks for partials to be combined.
    """

    problem: AnyProblem
    target: Target
    device: str | None = None
    grid_reduction: str = "auto"

    @property
    def text(self) -> str:
        """The key in the file, with the versions."""
        versions = [f"{name}={_version(package)}" for name, package in PACKAGES.items()]
        machine = [self.target.chip, f"sms={self.target.sms}", f"device={self.device or 'unknown'}"]
        asked = f"grid_reduction={self.grid_reduction}"
        return " ".join([*versions, f"schedule={_format()}", *machine, asked, _text(self.problem)])


@dataclass(frozen=True)
class Record:
    """A schedule, and the time of the whole function that was measured with it."""

    schedule: Schedule
    microseconds: float


def records_path() -> Path | None:
    """The file; None where records are switched off."""
    return cache_path(VARIABLE, "schedules.json")


def _text(value: Any) -> str:
    """A problem as text, the same in every process: sets are in order, and hints are left out."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(str, sorted(value)))}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if is_dataclass(value) and not isinstance(value, DType):
        names = (field.name for field in fields(value) if field.name != "hints")
        parts = (f"{name}={_text(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({', '.join(parts)})"
    return str(value)


@cache
def _format() -> str:
    """A checksum of a schedule's fields, which change from commit to commit while the version stays."""
    return f"{zlib.crc32(fields_of(Schedule).encode()):08x}"


@contextmanager
def on_trial(key: RecordKey, schedule: Schedule) -> Iterator[None]:
    """While the block runs, kernels that the thread compiles for the key have this schedule, or fail to."""
    reset = _ON_TRIAL.set({**_ON_TRIAL.get(), key.text: schedule})
    try:
        yield
    finally:
        _ON_TRIAL.reset(reset)


def trial_of(key: RecordKey) -> Schedule | None:
    """The schedule that `on_trial` gives a key, or None."""
    trials = _ON_TRIAL.get()
    return trials.get(key.text) if trials else None


def lookup(key: RecordKey) -> Record | None:
    """The entry of a key, or None; raises `ScheduleError` where the file is not what `store` writes."""
    path = records_path()
    if path is None or not path.exists():
        return None
    entry = _read(path).get(key.text)
    if entry is None:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("microseconds"), int | float):
        raise _broken(path, "an entry has no time")
    try:
        schedule = from_plain(Schedule, entry.get("schedule"))
    except ScheduleError as error:
        raise _broken(path, error.message) from error
    return Record(schedule, float(entry["microseconds"]))


def store(key: RecordKey, record: Record) -> None:
    """Adds or replaces an entry; other processes may do so at the same time."""
    from filelock import FileLock  # here, as it takes 15 ms, and only tuning stores anything

    path = records_path()
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        entries = _read(path) if path.exists() else {}
        plain = {"schedule": to_plain(record.schedule), "microseconds": record.microseconds}
        entries[key.text] = plain
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

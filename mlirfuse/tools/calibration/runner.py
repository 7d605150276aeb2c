"""Runs microbenchmarks in a process of their own: a kernel that hangs or faults costs its benchmark, and no other."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlirfuse.errors import RuntimeLaunchError

Begins = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What came of a benchmark.

    Attributes:
        name: the benchmark's.
        values: by quantity, the value of each run; empty where it failed.
        error: why it failed; empty where it did not.
    """

    name: str
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    error: str = ""


def worker_command(device: int) -> list[str]:
    """The command of the process that measures on a device; names of benchmarks follow."""
    return [sys.executable, "-m", "mlirfuse.tools.calibration.worker", str(device)]


def outcomes(
    command: Sequence[str], names: Sequence[str], timeout: float, begins: Begins = lambda name: None
) -> Iterator[Outcome]:
    """What comes of each benchmark, in order; the process is started again after one that has ended it.

    Args:
        command: of the process, as `worker_command` has it.
        names: of the benchmarks.
        timeout: seconds of a benchmark.
        begins: called with the name of each benchmark before it runs.

    Raises:
        RuntimeLaunchError: the process ends before it begins a benchmark.
    """
    left = list(names)
    while left:
        before = len(left)
        with _Worker([*command, *left]) as worker:
            for outcome in worker.outcomes(timeout, begins):
                left = left[left.index(outcome.name) + 1 :]
                yield outcome
                if not left:
                    return
        if len(left) == before:
            raise RuntimeLaunchError("the process that measures ended without a word", where=left[0])


class _Worker:
    """A started process, whose lines a thread reads."""

    def __init__(self, command: Sequence[str]):
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._output.close()
        self._errors.close()

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line)
        self._lines.put(None)

    def outcomes(self, timeout: float, begins: Begins) -> Iterator[Outcome]:
        """What comes of the benchmarks, up to the one that ends the process, or for which it is ended."""
        current = None
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except queue.Empty:
                if current is None:
                    raise RuntimeLaunchError(f"the process that measures did nothing for {timeout:g} s") from None
                yield Outcome(current, error=f"took longer than {timeout:g} s")
                return
            if line is None:
                yield from self._ended(current)
                return
            message = _message(line)
            if "begins" in message:
                current = str(message["begins"])
                begins(current)
            elif "name" in message:
                current = None
                yield Outcome(message["name"], message.get("values", {}), message.get("error", ""))

    def _ended(self, current: str | None) -> Iterator[Outcome]:
        code = self._process.wait()
        if current is not None:
            yield Outcome(current, error=f"the process ended with code {code}{self._last_error()}")
        elif code:
            raise RuntimeLaunchError(f"the process that measures ended with code {code}{self._last_error()}")

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f": {lines[-1]}" if lines else ""


def _message(line: str) -> dict[str, Any]:
    """The message of a line; empty for a line of something else, such as a library's."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

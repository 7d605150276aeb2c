"""Programs in worker processes, so that one that aborts or hangs takes no other with it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from fuzzing.check import CRASH, TIMEOUT, Outcome, outcome_of
from fuzzing.program import Program

Task = tuple[Any, str, str]
"""A seed or a program, the backend, and the profile of a seed."""


def run_task(task: Task) -> tuple[Outcome, str]:
    """The outcome, and the program's text where it is not right."""
    from fuzzing.generator import program_from_seed

    given, backend, profile = task
    program = given if isinstance(given, Program) else program_from_seed(given, profile)
    try:
        outcome = _backend(backend)(program)
    except Exception as error:  # noqa: BLE001  (whatever a program raises is what is asked for)
        outcome = outcome_of(error)
    return outcome, program.text if outcome.kind != "right" or outcome.spills else ""


def _backend(name: str) -> Callable[[Program], Outcome]:
    """A backend of the table, or one that is named `module:function`."""
    from fuzzing.backends import BACKENDS

    module, colon, function = name.partition(":")
    return getattr(import_module(module), function) if colon else BACKENDS[name]


def _work(pipe: Connection, environment: dict[str, str], log: str) -> None:
    os.environ.update(environment)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)  # what LLVM says before it aborts
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        task = pipe.recv()
        if task is None:
            return
        pipe.send(run_task(task))


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    log: str
    number: Any = None
    task: Task | None = None
    started: float = 0.0


class Pool:
    """Workers that run tasks; `run` yields results as they come.

    Args:
        jobs: how many.
        limit: seconds a task.
        environment: variables of the workers.
    """

    def __init__(self, jobs: int, limit: float, environment: dict[str, str] | None = None):
        self._jobs, self._limit, self._environment = jobs, limit, environment or {}
        self._context = multiprocessing.get_context("spawn")
        self._count = 0
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            os.path.exists(worker.log) and os.unlink(worker.log)

    def run(
        self, tasks: Iterable[tuple[Any, Task]], deadline: float = float("inf")
    ) -> Iterator[tuple[Any, Outcome, str]]:
        """(number, outcome, text) of each (number, task) as they end; none starts after `deadline`."""
        waiting = iter(tasks)
        ahead: deque[tuple[Any, Task]] = deque()
        while True:
            for worker in self._idle():
                if not ahead and time.monotonic() < deadline:
                    ahead.extend([item] if (item := next(waiting, None)) is not None else [])
                if not ahead or time.monotonic() >= deadline:
                    break
                worker.number, worker.task = ahead.popleft()
                worker.started = time.monotonic()
                worker.pipe.send(worker.task)
            busy = [w for w in self._workers if w.task is not None]
            if not busy:
                return
            ready = wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=0.5)
            for worker in busy:
                found = self._result(worker, ready)
                if found is not None:
                    number, worker.task = worker.number, None
                    yield number, *found

    def _idle(self) -> list[_Worker]:
        for worker in [w for w in self._workers if w.task is None and not w.process.is_alive()]:
            self._drop(worker)
        while len(self._workers) < self._jobs:
            self._start()
        return [w for w in self._workers if w.task is None]

    def _start(self) -> None:
        mine, theirs = self._context.Pipe()
        self._count += 1
        log = f"/tmp/fuzzing-{os.getpid()}-{self._count}.log"
        process = self._context.Process(target=_work, args=(theirs, self._environment, log), daemon=True)
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, mine, log))

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()

    def _result(self, worker: _Worker, ready: list[Any]) -> tuple[Outcome, str] | None:
        if worker.pipe in ready:
            try:
                outcome, text = worker.pipe.recv()
                assert worker.task is not None
                if outcome.kind == CRASH and worker.task[1] == "gpu":
                    self._drop(worker)  # the context may be lost, and no other program is to get it
                return outcome, text
            except (EOFError, OSError):
                pass
        if worker.pipe in ready or worker.process.sentinel in ready:
            self._drop(worker)
            said = _last_words(worker.log)
            return Outcome(
                CRASH,
                f"the process ended by signal {-(worker.process.exitcode or 0)}\n{said}",
                f"abort: {_assertion(said)}",
            ), _text(worker)
        if time.monotonic() - worker.started > self._limit:
            self._drop(worker)
            return Outcome(TIMEOUT, f"no result after {self._limit} s", "timeout"), _text(worker)
        return None


def _text(worker: _Worker) -> str:
    from fuzzing.generator import program_from_seed

    assert worker.task is not None
    given, _, profile = worker.task
    return given.text if isinstance(given, Program) else program_from_seed(given, profile).text


def _last_words(log: str) -> str:
    try:
        with open(log, errors="replace") as file:
            return file.read()[-3000:]
    except OSError:
        return ""


def _assertion(said: str) -> str:
    lines = [line for line in said.splitlines() if "Assertion" in line or "LLVM ERROR" in line or "UNREACHABLE" in line]
    text = lines[-1] if lines else next(iter(said.splitlines()), "")
    return text.split(": ", 1)[-1][:160]

"""Programs in worker processes, so that one that aborts or hangs takes no other with it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.fuzzing.program import Program
from tests.fuzzing.running.check import CRASH, TIMEOUT, Outcome, outcome_of

ENDING = ("gpu", "tests.support.fakes.doomed_backends:ends")
"""Backends whose workers end after a crash."""

CANNOT_FOLLOW = ("was asked for, but", "cannot be combined by atomics")
"""What errors of options say that a program has nothing for (docs/limits.md)."""

Task = tuple[Any, str, str]
"""A seed or a program, the backend, and the profile of a seed."""


def run_task(task: Task) -> tuple[Outcome, str]:
    """The outcome, and the program's text where it is not right."""
    from tests.fuzzing.generation.generator import program_from_seed

    given, backend, profile = task
    program = given if isinstance(given, Program) else program_from_seed(given, profile)
    outcome = run_program(_backend(backend), program)
    return outcome, program.text if outcome.kind != "right" or outcome.spills else ""


def run_program(backend: Callable[[Program], Outcome], program: Program) -> Outcome:
    """What becomes of a program; without its options where one is refused that none of its kernels can follow."""
    try:
        return backend(program)
    except Exception as error:  # noqa: BLE001  (whatever a program raises is what is asked for)
        if not (program.options and any(text in str(error) for text in CANNOT_FOLLOW)):
            return outcome_of(error)
    return run_program(backend, replace(program, options={}))


def _backend(name: str) -> Callable[[Program], Outcome]:
    """A backend of the table, or one that is named `module:function`."""
    from tests.fuzzing.running.backends import BACKENDS

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
        outcome, text = run_task(task)
        is_last = outcome.kind == CRASH and task[1] in ENDING  # its context may be lost
        pipe.send((outcome, text, is_last))
        if is_last:
            return


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
                if self._gives(worker, ahead[0]):
                    ahead.popleft()
            busy = [w for w in self._workers if w.task is not None]
            if not busy:
                if ahead and time.monotonic() < deadline:
                    continue  # a worker ended before it was given this
                return
            ready = wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=0.5)
            for worker in busy:
                found = self._result(worker, ready)
                if found is not None:
                    number, worker.task = worker.number, None
                    yield number, *found

    def _gives(self, worker: _Worker, item: tuple[Any, Task]) -> bool:
        """Sends a task to an idle worker; drops a worker that has ended since its last one, and returns False."""
        try:
            worker.pipe.send(item[1])
        except OSError:
            self._drop(worker)
            return False
        worker.number, worker.task = item
        worker.started = time.monotonic()
        return True

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
                outcome, text, is_last = worker.pipe.recv()
            except (EOFError, OSError):
                pass
            else:
                if is_last:
                    self._drop(worker)  # now: it may take its time to end, and would take another task until then
                return outcome, text
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
    from tests.fuzzing.generation.generator import program_from_seed

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

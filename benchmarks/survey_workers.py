"""Runs a survey on one GPU: first many processes compile and check, then one after the other measures what is its own.

No process compiles twice what it measures, and none works while another one measures. What a crash or a kernel that
does not end takes along is reported.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from survey_programs.program import Program

PATIENCE = 75.0
"""Seconds without a word from a process, after which it is ended."""

COMPILING = 0.6
"""The part of the time after which nothing more is compiled."""

ENVIRONMENT = {
    "CUDA_CACHE_DISABLE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
"""Of the processes: first calls compile (mlirfuse's cache is a new folder), and none starts processes of its own."""

Emit = Callable[[dict[str, Any]], None]


@dataclass
class Worker:
    """A process.

    Attributes:
        process: it.
        pipe: to it.
        heard: when it spoke last.
        busy: the program that it is at.
        ready: what it has compiled.
        idle: whether it waits for its turn to measure, or is gone.
    """

    process: Any
    pipe: Connection
    heard: float = field(default_factory=time.monotonic)
    busy: str | None = None
    ready: list[str] = field(default_factory=list)
    idle: bool = False

    def end(self) -> None:
        """Ends the process, whatever it does, and the assemblers that it runs."""
        if self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # its own group, which it makes first of all
            except ProcessLookupError:
                self.process.kill()
        self.process.join()


class Survey:
    """The state of a run: programs that nobody has compiled yet, and when to stop compiling."""

    def __init__(self, names: Sequence[str], until: float, emit: Emit):
        self.left, self.until, self.emit = deque(names), until, emit

    def talk(self, workers: Sequence[Worker]) -> None:
        """Hears processes, and gives them programs, until all are idle or gone."""
        while active := [worker for worker in workers if not worker.idle]:
            said = wait([worker.pipe for worker in active], timeout=1.0)
            for worker in active:
                if worker.pipe in said:
                    self._hear(worker)
                elif time.monotonic() - worker.heard > PATIENCE:
                    self._lose(worker, f"no word for {PATIENCE:.0f} s")

    def _hear(self, worker: Worker) -> None:
        try:
            kind, value = worker.pipe.recv()
        except (EOFError, OSError):
            self._lose(worker, "its process died")
            return
        worker.heard = time.monotonic()
        if kind == "asks":
            name = self.left.popleft() if self.left and time.monotonic() < self.until else None
            worker.pipe.send(name)
            worker.busy, worker.idle = name, name is None
        elif kind == "ready":
            worker.ready.append(value)
        elif kind == "measures":
            worker.busy = value
        elif kind == "row":
            worker.ready = [name for name in worker.ready if name != value["name"]]
            self.emit(value)
        else:
            worker.idle = True

    def _lose(self, worker: Worker, why: str) -> None:
        """A row for what the process was at; what it had ready is left for others, or for another run."""
        worker.end()
        worker.idle = True
        if worker.busy is not None:
            self.emit({"name": worker.busy, "failures": {"mlirfuse": why}})
        self.left.extend(name for name in worker.ready if name != worker.busy)
        worker.ready = []


def run(names: Sequence[str], listing: tuple[Any, ...], jobs: int, seconds: float, unfused: bool, emit: Emit) -> None:
    """Compiles and measures programs.

    Args:
        names: of the programs.
        listing: arguments of `all_programs`, which makes them anew in each process.
        jobs: processes that compile.
        seconds: when to stop, with what was measured until then.
        unfused: whether `fusion="off"` is a contestant.
        emit: called with each program's row, in any order.
    """
    begin = time.monotonic()
    context = multiprocessing.get_context("spawn")
    cache = tempfile.TemporaryDirectory()
    os.environ.update(ENVIRONMENT, MLIRFUSE_CACHE=cache.name)
    alone, workers = context.Lock(), []
    for _ in range(min(jobs, len(names))):
        pipe, other = context.Pipe()
        process = context.Process(target=_work, args=(other, alone, listing, unfused), daemon=True)
        process.start()
        other.close()
        workers.append(Worker(process, pipe))
    survey = Survey(names, begin + COMPILING * seconds, emit)
    try:
        survey.talk(workers)
        for worker in workers:
            if worker.ready and time.monotonic() < begin + seconds:
                worker.pipe.send(begin + seconds)
                worker.idle, worker.heard = False, time.monotonic()
                survey.talk([worker])
    finally:
        for worker in workers:
            worker.end()
        cache.cleanup()


def all_programs(count: int = 0, seed: int = 0, table: str = "table") -> list[Program]:
    """The programs of a module of `survey_programs`, or that many random ones."""
    from survey_programs.generator import random_programs

    return random_programs(count, seed) if count else import_module(f"survey_programs.{table}").programs()


def _work(pipe: Connection, alone: Any, listing: tuple[Any, ...], unfused: bool) -> None:
    """A process: compiles what it is given, waits for its turn, measures, ends."""
    os.setpgid(0, 0)
    import survey_measure as one
    import torch

    known = {program.name: program for program in all_programs(*listing)}
    one.start()
    ready = []
    while True:
        pipe.send(("asks", None))
        if (name := pipe.recv()) is None:
            break
        try:
            prepared = one.prepare(known[name], unfused, alone)
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001  # what it met is a result; it is reported
            pipe.send(("row", _failed(known[name], error)))
            if _is_lost(torch):
                return
            continue
        if one.MLIRFUSE in prepared.calls:
            ready.append(prepared)
            pipe.send(("ready", name))
        else:
            pipe.send(("row", prepared.row))
    deadline = pipe.recv()
    for prepared in ready:
        if time.monotonic() > deadline:
            break
        pipe.send(("measures", prepared.program.name))
        try:
            row = one.measure(prepared)
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001  # as above
            row = prepared.row | _failed(prepared.program, error)
        pipe.send(("row", row))
        if _is_lost(torch):
            return
    pipe.send(("idle", None))


def _failed(program: Program, error: Exception) -> dict[str, Any]:
    text = f"{type(error).__name__}: {str(error).strip()[:300]}"
    return {"name": program.name, "domain": program.domain, "failures": {"survey": text}}


def _is_lost(torch: Any) -> bool:
    """Whether an error has ended this process's use of the GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False

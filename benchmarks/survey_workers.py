"""Runs a survey on one GPU: first many processes compile and check, then one after the other measures what is its own.

No process compiles twice what it measures, and none works while another one measures. What a crash or a kernel that
does not end takes along is reported.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from queue import Empty
from typing import Any

from survey_programs.program import Program

PATIENCE = 150.0
"""Seconds without a word from a process, after which it is ended."""

COMPILING = 0.6
"""The part of the time after which nothing more is compiled."""

Emit = Callable[[dict[str, Any]], None]


class Worker:
    """A process, what it said last, and what it has ready."""

    def __init__(self, number: int, context: Any, shared: tuple[Any, ...], listing: tuple[Any, ...], unfused: bool):
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, shared, listing, unfused), daemon=True)
        self.process.start()
        other.close()
        self.number, self.heard, self.busy, self.ready = number, time.monotonic(), None, []
        self.idle = False

    def end(self) -> None:
        """Ends the process, whatever it does."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


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
    todo, stop, alone = context.Queue(), context.Event(), context.Lock()
    for name in names:
        todo.put(name)
    os.environ.update(
        MLIRFUSE_CACHE="off", CUDA_CACHE_DISABLE="1", TORCHINDUCTOR_COMPILE_THREADS="1", OMP_NUM_THREADS="1"
    )
    workers = [Worker(n, context, (todo, stop, alone), listing, unfused) for n in range(min(jobs, len(names)))]
    try:
        for message in _talk(workers, stop, begin + COMPILING * seconds):
            emit(message)
        for worker in workers:
            if worker.process.is_alive() and worker.ready and time.monotonic() < begin + seconds:
                worker.pipe.send(begin + seconds)
                worker.idle, worker.heard = False, time.monotonic()
                for message in _talk([worker], stop, begin + seconds):
                    emit(message)
    finally:
        for worker in workers:
            worker.end()


def _talk(workers: Sequence[Worker], stop: Any, deadline: float) -> Iterator[dict[str, Any]]:
    """Hears processes until all are idle or gone; the rows that they measured, and failures."""
    while active := [w for w in workers if not w.idle]:
        if time.monotonic() > deadline:
            stop.set()
        said = wait([w.pipe for w in active], timeout=1.0)
        for worker in active:
            if worker.pipe in said:
                yield from _hear(worker)
            elif time.monotonic() - worker.heard > PATIENCE:
                yield from _lost(worker, f"no word for {PATIENCE:.0f} s")


def _hear(worker: Worker) -> Iterator[dict[str, Any]]:
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, OSError):
        yield from _lost(worker, "its process died")
        return
    worker.heard = time.monotonic()
    if kind == "begins":
        worker.busy = value
    elif kind == "ready":
        worker.busy = None
        worker.ready.append(value)
    elif kind == "row":
        worker.busy = None
        if value["name"] in worker.ready:
            worker.ready.remove(value["name"])
        yield value
    else:
        worker.busy, worker.idle = None, True


def _lost(worker: Worker, why: str) -> Iterator[dict[str, Any]]:
    """A row for what the process was at; what it had ready is left for another run."""
    worker.end()
    worker.idle = True
    if worker.busy is not None:
        yield {"name": worker.busy, "failures": {"mlirfuse": why}}
        worker.ready = []


def all_programs(count: int = 0, seed: int = 0) -> list[Program]:
    """The table, or that many random programs."""
    from survey_programs.generator import random_programs
    from survey_programs.table import programs

    return random_programs(count, seed) if count else programs()


def _work(pipe: Connection, shared: tuple[Any, ...], listing: tuple[Any, ...], unfused: bool) -> None:
    """A process: compiles until nothing is left or time is up, waits for its turn, measures, ends."""
    import survey_measure as one
    import torch

    todo, stop, alone = shared
    known = {program.name: program for program in all_programs(*listing)}
    one.start()
    ready = []
    while not stop.is_set():
        try:
            name = todo.get(timeout=0.5)
        except Empty:
            break
        pipe.send(("begins", name))
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
    pipe.send(("idle", None))
    deadline = pipe.recv()
    for prepared in ready:
        if time.monotonic() > deadline:
            break
        pipe.send(("begins", prepared.program.name))
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

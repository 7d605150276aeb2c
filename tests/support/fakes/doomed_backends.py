"""Backends of the fuzzer that end badly, for tests of its workers."""

from __future__ import annotations

import atexit
import os
import time
from threading import Timer

from tests.fuzzing.program import Program
from tests.fuzzing.running.check import RIGHT, Outcome, WrongResult


def aborts(program: Program) -> Outcome:
    if program.seed % 2:
        os.write(2, b"python: file.cpp:1: f(): Assertion `x' failed.\n")
        os.abort()
    return Outcome(RIGHT)


def ends(program: Program) -> Outcome:
    """Its worker ends after a crash, and takes its time, as one with a CUDA context does."""
    if program.seed % 2:
        atexit.register(time.sleep, 1)
        raise KeyError(program.seed)
    return Outcome(RIGHT)


def disappears(program: Program) -> Outcome:
    """Its worker is gone a moment after its answer, of which it says nothing."""
    if program.seed % 2:
        Timer(0.2, os._exit, [0]).start()
    return Outcome(RIGHT)


def hangs(program: Program) -> Outcome:
    time.sleep(600 if program.seed % 2 else 0)
    return Outcome(RIGHT)


def dislikes_exp(program: Program) -> Outcome:
    if any(s.op == "exp" for s in program.statements):
        raise WrongResult("there is an exponential")
    return Outcome(RIGHT)

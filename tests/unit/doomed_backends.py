"""Backends of the fuzzer that end badly, for tests of its workers."""

from __future__ import annotations

import os
import time

from fuzzing.check import RIGHT, Outcome, WrongResult
from fuzzing.program import Program


def aborts(program: Program) -> Outcome:
    if program.seed % 2:
        os.write(2, b"python: file.cpp:1: f(): Assertion `x' failed.\n")
        os.abort()
    return Outcome(RIGHT)


def hangs(program: Program) -> Outcome:
    time.sleep(600 if program.seed % 2 else 0)
    return Outcome(RIGHT)


def dislikes_exp(program: Program) -> Outcome:
    if any(s.op == "exp" for s in program.statements):
        raise WrongResult("there is an exponential")
    return Outcome(RIGHT)

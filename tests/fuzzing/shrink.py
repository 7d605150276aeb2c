"""Makes a failing program smaller while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.fuzzing.generation.generator import trimmed
from tests.fuzzing.inputs import Input
from tests.fuzzing.program import Program, Statement
from tests.fuzzing.running.check import Outcome
from tests.fuzzing.running.pool import Pool
from tests.fuzzing.types import Refused


def shrink(pool: Pool, program: Program, backend: str, outcome: Outcome, seconds: float) -> tuple[Program, Outcome]:
    """The smallest program found in that time whose outcome has the same kind and signature."""
    deadline = time.monotonic() + seconds
    best, found = program, outcome
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in _candidates(best):
            if time.monotonic() > deadline:
                break
            if not _has_meaning(candidate):
                continue
            _, got, _ = next(pool.run([(0, (candidate, backend, ""))]))
            if (got.kind, got.signature) == (outcome.kind, outcome.signature):
                best, found, progress = candidate, got, True
                break
    return best, found


def _has_meaning(program: Program) -> bool:
    try:
        with np.errstate(all="ignore"):
            program.evaluate()
    except Refused:
        return False
    return True


def _candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, those that leave out most first."""
    if program.options:
        yield replace(program, options={})
    if program.rows:
        yield replace(program, rows=())
        yield from (replace(program, rows=(n,)) for n in program.rows if len(program.rows) > 1)
    if program.out != "none":
        yield replace(program, out="none")
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield trimmed(replace(program, outputs=(name,), structure="tuple"))
        for number in range(len(program.outputs)):
            kept = program.outputs[:number] + program.outputs[number + 1 :]
            yield trimmed(replace(program, outputs=kept, structure="tuple"))
    elif program.structure != "single":
        yield replace(program, structure="single")
    for statement in reversed(program.statements):
        yield from _without(program, statement)
    yield from _smaller(program)
    yield from _plainer(program)
    if not program.dynamic:
        yield replace(program, dynamic=True)


def _without(program: Program, statement: Statement) -> Iterator[Program]:
    """The statement's operand, or an input, in the place of its result."""
    for argument in statement.args:
        if isinstance(argument, str) and argument not in program.numbers:
            yield _renamed(program, statement, argument)
    try:
        with np.errstate(all="ignore"):
            value = program.evaluate()[statement.name]
    except Refused:
        return
    if len(program.inputs) < 6:
        fresh = Input(f"y{statement.name[1:]}", value.shape, value.dtype)
        yield _renamed(replace(program, inputs=(*program.inputs, fresh)), statement, fresh.name)


def _renamed(program: Program, gone: Statement, name: str) -> Program:
    def named(old: object) -> object:
        return name if isinstance(old, str) and old == gone.name else old

    statements = tuple(
        replace(s, args=tuple(named(a) for a in s.args), params=_params(s, gone.name, name))
        for s in program.statements
        if s is not gone
    )
    return trimmed(replace(program, statements=statements, outputs=tuple(str(named(o)) for o in program.outputs)))


def _params(statement: Statement, old: str, new: str) -> dict[str, object]:
    def entry(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(entry, value))
        return replace(value, name=new) if getattr(value, "name", None) == old else value

    return {key: entry(value) for key, value in statement.params.items()}


def _smaller(program: Program) -> Iterator[Program]:
    """One extent smaller wherever it stands."""
    extents = sorted({n for x in program.inputs for n in x.shape if n > 1}, reverse=True)
    for old in extents:
        for new in dict.fromkeys((1, 2, 3, 8, old // 4, old // 2, old - 1)):
            if 0 < new < old:
                yield _resized(program, old, new)
    for number, given in enumerate(program.inputs):
        if given.shape:
            for dim, n in enumerate(given.shape):
                if n > 1:
                    shape = (*given.shape[:dim], 1, *given.shape[dim + 1 :])
                    yield _with_input(program, number, replace(given, shape=shape))


def _resized(program: Program, old: int, new: int) -> Program:
    def entry(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(entry, value))
        return new if isinstance(value, int) and not isinstance(value, bool) and value == old else value

    inputs = tuple(replace(x, shape=entry(x.shape)) for x in program.inputs)
    statements = tuple(
        replace(s, params={k: entry(v) if k == "shape" else v for k, v in s.params.items()}) for s in program.statements
    )
    return replace(program, inputs=inputs, statements=statements)


def _plainer(program: Program) -> Iterator[Program]:
    for number, given in enumerate(program.inputs):
        if given.layout != "contiguous":
            yield _with_input(program, number, replace(given, layout="contiguous"))
        if given.dtype != "float32":
            yield _with_input(program, number, replace(given, dtype="float32"))
        if given.data not in ("normal", "integers"):
            yield _with_input(program, number, replace(given, data="normal"))
        elif given.data == "normal":
            yield _with_input(program, number, replace(given, data="integers"))
    for number, statement in enumerate(program.statements):
        if statement.style:
            plain = replace(statement, style=0)
            yield replace(program, statements=(*program.statements[:number], plain, *program.statements[number + 1 :]))


def _with_input(program: Program, number: int, given: Input) -> Program:
    return replace(program, inputs=(*program.inputs[:number], given, *program.inputs[number + 1 :]))

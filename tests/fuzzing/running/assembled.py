"""Interprets what calls on a GPU run: schedules that are chosen by reports of the assembler, or of one made up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

from tests.fuzzing.program import Program
from tests.fuzzing.running.backends import calls_of, expected_of, spills_of
from tests.fuzzing.running.check import RIGHT, Outcome, check

TARGET = "sm_90a"

MOST_COMPILATIONS = 7
"""A kernel is compiled once, and up to six times again."""


def assembled(program: Program) -> Outcome:
    """Each call of the program as a GPU of `TARGET` would compile it, kernels that spill with other schedules."""
    compiled = _interpreted(program)
    kernels = [resources for each in compiled for resources in each.resources]
    spills = spills_of([(TARGET, resources) for resources in kernels])
    return Outcome(RIGHT, kernels=len(kernels), again=_again(compiled), spills=spills)


def crowded(program: Program) -> Outcome:
    """As `assembled`, with an assembler that says of every kernel that it spills, the first few times.

    So schedules that few programs are compiled with are interpreted, too. How they would be assembled is not seen.
    """
    from mlirfuse.compiler.feedback import without_spills

    crowd = MadeUpReports(program.seed)
    with patch("mlirfuse.compiler.compile.without_spills", lambda once: without_spills(once, crowd.fresh())):
        compiled = _interpreted(program)
    return Outcome(RIGHT, kernels=sum(len(each.binaries) for each in compiled), again=_again(compiled))


class MadeUpReports:
    """Reports of an assembler for which every kernel spills, the first 1 to `MOST_COMPILATIONS - 1` times."""

    def __init__(self, seed: int):
        self._random = Random(f"reports of {seed}")

    def fresh(self) -> Any:
        """An assembler of one program; see `without_spills`."""
        times = iter(range(self._random.randrange(1, MOST_COMPILATIONS)))

        def assemble(binaries: Sequence[Any]) -> list[Any]:
            if next(times, None) is None:
                return []
            return [self._report(binary) for binary in binaries]

        return assemble

    def _report(self, binary: Any) -> Any:
        from mlirfuse.lowering.ptx.resources import KernelResources

        nbytes = 4 * self._random.choice((1, 4, 16, 64, 256))
        registers = self._random.choice((32, 64, 128, 255))
        return KernelResources(binary.name, registers, nbytes, nbytes, nbytes, 0, 0, 1, 1)


def _interpreted(program: Program) -> list[Any]:
    """What was compiled for the calls of the program, once the interpreter found them right."""
    from mlirfuse import interpreter
    from mlirfuse.api.argument_specs import numpy_specs
    from mlirfuse.target import target_of

    fused = program.fused(TARGET)
    order = {"order": "random", "seed": program.seed} if program.seed % 3 == 0 else {}
    for number, call in enumerate(calls_of(program)):
        arguments = call.arguments()
        compiled = fused._compile(partial(numpy_specs, arguments, names=program.parameters), target_of(TARGET))
        results = interpreter.run(compiled.interpreted, compiled.program.name, arguments, **order)
        check(results, expected_of(call), f"call {number}" if number else "assembled")
    return list(fused._compiled.values())


def _again(compiled: Sequence[Any]) -> int:
    """How many kernels were compiled more than once."""
    return sum(len(each.attempts) for each in compiled)

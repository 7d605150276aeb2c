"""Compiling a function again whose kernels became slow as their schedules spilled: with these kernels split."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from mlir import ir

from mlirfuse.analysis.kernels import host_function
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.predicted import Predicted, PredictedKernel
from mlirfuse.dialect.attributes import SPLIT_KERNELS
from mlirfuse.errors import CompileError, PassError
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

SLOWER = 1.25
"""Ratio of the time of the schedule that was kept to that of the first choice, from which a kernel is split."""


def with_split_kernels(lowered: Lowered, compiled: Compiled, compile_: Callable[[Lowered], Compiled]) -> Compiled:
    """What a function is compiled to where its slow kernels are split, if that is predicted to be faster.

    A kernel is whole where its fastest schedule is predicted to beat two kernels. That says nothing of what is left
    once the assembler has shown that this schedule spills.

    Args:
        lowered: the traced function.
        compiled: what it was compiled to; returned where no kernel is slow, the others are not faster, or these cannot
            be compiled, which `explain` then says.
        compile_: compiles a function, and gives kernels that spill other schedules.
    """
    slow = [name for name, tried in compiled.attempts.items() if any(attempt.spilled for attempt in tried)]
    if not slow:
        return compiled
    found, lacking = compiled.predicted(), _lacking(compiled)
    first = {name: compiled.attempts[name][0].schedule for name in slow}
    slow = [
        kernel.name
        for kernel in found.kernels
        if kernel.name in first and _is_slow(kernel, first[kernel.name], lacking.get(kernel.name, 1.0))
    ]
    if not slow:
        return compiled
    try:
        other = compile_(_split(lowered, slow))
    except (PassError, CompileError) as error:
        why = f"{' and '.join(slow)} spills, and cannot be compiled as several kernels: {error.message}"
        return replace(compiled, lowered=replace(compiled.lowered, notes=(*compiled.lowered.notes, why)))
    if len(other.program.launches) == len(compiled.program.launches):
        return compiled
    return other if _microseconds(other.predicted(), _lacking(other)) < _microseconds(found, lacking) else compiled


def _lacking(compiled: Compiled) -> dict[str, float]:
    """Registers that threads want to those that they have, by kernel whose schedule spills."""
    return {
        name: attempt.lacking
        for name, tried in compiled.attempts.items()
        for attempt in tried
        if attempt.spilled and attempt.schedule == compiled.schedules.get(name)
    }


def _microseconds(found: Predicted, lacking: Mapping[str, float]) -> float:
    """What a function is predicted to take, kernels that spill as many times longer as their threads lack registers."""
    more = [(lacking.get(kernel.name, 1.0) - 1) * kernel.prediction.microseconds for kernel in found.kernels]
    return found.microseconds + sum(more)


def _is_slow(kernel: PredictedKernel, first: Schedule, lacking: float) -> bool:
    """Whether the schedule that was kept takes much longer than the first choice, and than the launch of a kernel; as
    many times longer as its threads lack registers.
    """
    if not isinstance(kernel.sized, Problem) or not kernel.sized.reduced:
        return False
    fastest, kept = predict(first, kernel.sized, kernel.machine).microseconds, lacking * kernel.prediction.microseconds
    return kept > SLOWER * fastest and kept - fastest > 1e6 * kernel.machine.next_launch


def _split(lowered: Lowered, names: list[str]) -> Lowered:
    """The function with an attribute that has some kernels split."""
    module = lowered.module_with({})
    with module.context:
        # Of a kernel that reduces parts (`fuse-split-parts`) the whole is to be split before, in another way.
        known = [*names, *(re.sub(r"_parts\d*$", "", name) for name in names)]
        host_function(module.operation).attributes[SPLIT_KERNELS] = ir.ArrayAttr.get(
            [ir.StringAttr.get(name) for name in dict.fromkeys(known)]
        )
    return replace(lowered, module=module, _at_kernels=[])

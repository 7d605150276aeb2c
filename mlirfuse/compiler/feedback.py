"""Compiles again, with other schedules, where the assembler's report contradicts what a choice assumed: where kernels
spill, or take more registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mlirfuse.errors import CompileError, MlirFuseError, SharedMemoryError
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.spills import resources_of
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.schedule.choice.attempts import Attempt
from mlirfuse.schedule.schedule import Schedule

Attempts = Mapping[str, tuple[Attempt, ...]]
"""By kernel, the schedules that were compiled for it and spilled, or whose registers might be too many, in order."""

MOST_REGISTERS = 64
"""Of a thread, up to which half of the threads that an SM may have are resident: enough for any estimate."""

Chosen = Mapping[str, Schedule]
"""The schedule of each kernel, by its name before it is tiled."""

Assemble = Callable[[Sequence[KernelBinary]], list[KernelResources]]


class _HasBinaries(Protocol):
    @property
    def binaries(self) -> Mapping[str, KernelBinary]: ...


C = TypeVar("C", bound=_HasBinaries)


class Refused(Exception):
    """A compilation failed with these schedules.

    Attributes:
        error: the compiler's error.
        chosen: the schedules, by kernel.
    """

    def __init__(self, error: MlirFuseError, chosen: Chosen):
        super().__init__(str(error))
        self.error, self.chosen = error, chosen


def without_spills(compile_once: Callable[[Attempts], tuple[C, Chosen]], assemble: Assemble = resources_of) -> C:
    """The first of several compilations in which no kernel spills, or in which each that does loses least by that.

    A kernel that needs more shared memory than was estimated gets another schedule too, and so does one whose registers
    leave fewer blocks resident than the choice of its schedule assumed, where another one is faster then.

    The result depends only on the program and the assembler's reports. One compilation changes the schedules of all
    kernels that spill; the other kernels stay the same, and their machine code is cached.

    Args:
        compile_once: compiles the program with schedules that were not attempted, or with the best attempt where there
            are none. Raises `Refused` where that is not possible.
        assemble: the assembler's report of some kernels; empty without an assembler.

    Raises:
        MlirFuseError: the program cannot be compiled with the schedules that were chosen first.
    """
    attempts: dict[str, tuple[Attempt, ...]] = {}
    while True:
        try:
            compiled, chosen = compile_once(attempts)
            found = _attempts_in(compiled, chosen, attempts, assemble)
        except Refused as refused:
            error = refused.error
            blamed = {kernel_of(error.kernel)} if isinstance(error, SharedMemoryError) else set()
            found = {
                name: Attempt(schedule, 0, 0, refused=error.message)
                for name, schedule in refused.chosen.items()
                if name in attempts or name in blamed
            }
            if not _new(found, attempts):
                raise error from None
        new = _new(found, attempts)
        if not new:
            return compiled
        attempts = {**attempts, **{name: (*attempts.get(name, ()), attempt) for name, attempt in new.items()}}


def _new(found: Mapping[str, Attempt], attempts: Attempts) -> dict[str, Attempt]:
    """Attempts with schedules that were not attempted before."""
    known = {name: {attempt.schedule for attempt in tried} for name, tried in attempts.items()}
    return {name: attempt for name, attempt in found.items() if attempt.schedule not in known.get(name, ())}


def _attempts_in(compiled: C, chosen: Chosen, attempts: Attempts, assemble: Assemble) -> dict[str, Attempt]:
    """An attempt for each kernel that spills, that the assembler refuses, or whose registers may be too many.

    Raises the assembler's error for a kernel without earlier attempts, which has no other schedule to return to.
    """
    found: dict[str, Attempt] = {}
    for resources in _reports(list(compiled.binaries.values()), assemble):
        if isinstance(resources, _Refusal):
            if resources.kernel not in attempts:
                raise resources.error
            found[resources.kernel] = Attempt(chosen[resources.kernel], 0, 0, refused=resources.error.message)
            continue
        name = kernel_of(resources.name)
        spilled = max(resources.spill_store_bytes or 0, resources.spill_load_bytes or 0)
        if spilled and name in chosen and spilled > (found[name].spilled if name in found else 0):
            second = _is_second_stage(resources.name)
            found[name] = Attempt(chosen[name], resources.registers, spilled, second_stage=second)
        elif name in chosen and name not in found and _is_crowded(chosen[name], resources):
            found[name] = Attempt(chosen[name], resources.registers, 0)
    failed = {name for name, tried in attempts.items() if any(attempt.failed for attempt in tried)}
    return {name: attempt for name, attempt in found.items() if attempt.failed or name not in failed}


def _is_crowded(schedule: Schedule, resources: KernelResources) -> bool:
    """Whether ptxas had as many registers as it liked, and took many."""
    is_free = schedule.blocks_per_sm == 0 and schedule.contraction is None
    return is_free and resources.registers > MOST_REGISTERS


@dataclass(frozen=True)
class _Refusal:
    """The assembler's refusal of a kernel."""

    kernel: str
    error: CompileError


def _reports(binaries: Sequence[KernelBinary], assemble: Assemble) -> Iterator[KernelResources | _Refusal]:
    """The assembler's report of all kernels, assembled together, or one by one where the assembler refuses one."""
    try:
        yield from assemble(binaries)
        return
    except CompileError as error:
        if len(binaries) == 1:
            yield _Refusal(kernel_of(binaries[0].name), error)
            return
    for binary in binaries:
        yield from _reports([binary], assemble)


def kernel_of(name: str) -> str:
    """The name of a kernel before tiling, which appends `_kernel`, and `_second_stage` for a second kernel."""
    return name.removesuffix("_kernel").removesuffix("_second_stage")


def _is_second_stage(name: str) -> bool:
    """Whether a kernel adds up the partials of another one."""
    return name.removesuffix("_kernel").endswith("_second_stage")

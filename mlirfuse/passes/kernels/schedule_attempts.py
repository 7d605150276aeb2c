"""Earlier schedules and the assembler's reports: attributes of the host function that `fuse-assign-schedule` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from mlirfuse.analysis.kernels import functions
from mlirfuse.dialect.attributes import ATTEMPTS
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.attempts import Attempt
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.dataclass_attributes import from_attribute, to_attribute

SPILLED = "spilled"
"""The word of remarks on attempts."""


def attach_attempts(function: ir.Operation, attempts: Mapping[str, Sequence[Attempt]]) -> None:
    """Puts attempts on a host function; its context must be current."""
    arrays = {name: ir.ArrayAttr.get([to_attribute(each) for each in tried]) for name, tried in attempts.items()}
    function.attributes[ATTEMPTS] = ir.DictAttr.get(arrays)


def attempts_of(module: ir.Operation) -> dict[str, tuple[Attempt, ...]]:
    """The attempts by kernel; raises `ScheduleError` where one is malformed."""
    return {
        entry.name: tuple(from_attribute(Attempt, each) for each in ir.ArrayAttr(entry.attr))
        for function in functions(module)
        if ATTEMPTS in function.attributes
        for entry in ir.DictAttr(function.attributes[ATTEMPTS])
    }


def forget_attempts(module: ir.Operation) -> None:
    """Removes the attempts from the host functions, once the kernels have their schedules."""
    for function in functions(module):
        if ATTEMPTS in function.attributes:
            del function.attributes[ATTEMPTS]


def report(
    pass_: Pass, kernel: ir.Operation, chosen: Schedule, tried: Sequence[Attempt], remarks: Remarks, *, kept: str
) -> None:
    """Remarks what became of schedules, and which was chosen; `kept` is the origin of a single attempt that is kept.

    A single one that did not spill, and was kept, is nothing to speak of.
    """
    outcomes = "; ".join(_outcome(attempt) for attempt in tried)
    found = next((attempt for attempt in tried if attempt.schedule == chosen), None)
    if found is not None and not found.failed:
        if len(tried) > 1:
            remarks.applied(pass_, f"{outcomes}: {_text(chosen)} is the fastest of these, and was kept", kernel)
    elif found is None:
        remarks.applied(pass_, f"{outcomes}: {_text(chosen)} was chosen instead", kernel)
    elif len(tried) == 1:
        remarks.declined(pass_, f"{outcomes}, and was kept: it {kept}, and nothing else is legal", kernel)
    else:
        remarks.declined(pass_, f"{outcomes}: {_text(chosen)} loses least by that, and was kept", kernel)


def _outcome(attempt: Attempt) -> str:
    what = f"took {attempt.registers} registers a thread"
    if attempt.failed:
        spilled = f"{SPILLED} {attempt.spilled} bytes a thread"
        what = f"cannot be compiled ({attempt.refused})" if attempt.refused else spilled
    return f"{_text(attempt.schedule)} {what}"


def _text(schedule: Schedule) -> str:
    """The fields in which the schedules of one kernel differ, as text."""
    layout = schedule.layout
    further = [
        f"cluster {layout.cluster}" if layout.cluster > 1 else "",
        f"{schedule.blocks_per_sm} blocks an SM" if schedule.blocks_per_sm else "",
        f"{schedule.shared_spill} fragments spilled to shared memory" if schedule.shared_spill else "",
        f"{schedule.persistent_loop.second_stage_reads} reads at once in the second stage"
        if schedule.persistent_loop
        else "",
    ]
    first = f"tile {schedule.tile} of {layout.threads} threads with {layout.elements_per_thread} elements each"
    return ", ".join([first, schedule.persistence, f"{schedule.order} first", *filter(None, further)])

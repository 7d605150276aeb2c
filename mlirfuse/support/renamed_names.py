"""Old names of options, passes, ops and attributes, and their new names.

An old name raises an error that gives the new one; no name is accepted under two spellings. One table serves `mf.fuse`,
the constructors of schedules, pass pipelines and IR that comes from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import wraps
from typing import Any, Literal, TypeVar

from mlirfuse.errors import ScheduleError

Kind = Literal["option", "value", "field", "pass", "pass option", "op", "attribute"]

RENAMED: Mapping[Kind, Mapping[str, str]] = {
    "option": {
        "finish": "grid_reduction",
    },
    "value": {
        "slices": "grid_sync",
        "reread": "multi_pass",
        "last_arriver": "last_block",
        "turnstile": "serial",
        "mailboxes": "flagged",
    },
    "field": {
        "walk": "persistent_loop",
        "parked": "shared_spill",
        "crossed": "transposed",
        "late_addresses": "rematerialize_addresses",
        "finish": "grid_reduction",
        "finish_tile": "second_stage_tile",
        "finish_layout": "second_stage_layout",
        "finish_reads": "second_stage_reads",
        "teams": "consumer_groups",
        "turned": "transposed_operands",
        "skew": "shift_to",
        "moved": "realigned",
    },
    "pass": {
        "fuse-stage-walk": "fuse-stage-persistent-loop",
        "fuse-peel-walk": "fuse-peel-persistent-loop",
        "fuse-park-live-values": "fuse-spill-to-shared",
        "fuse-cross-tiles": "fuse-transpose-tiles",
        "lower-mailboxes": "lower-flagged-accesses",
        "fuse-turn-factors": "fuse-transpose-operands",
        "fuse-store-factors": "fuse-materialize-prologues",
        "fuse-spread-copies": "fuse-interleave-copies",
        "lower-pins": "lower-optimization-barriers",
    },
    "pass option": {},
    "op": {
        "fuse.park": "fuse.spill_to_shared",
        "fuse.post": "fuse.flagged_store",
        "fuse.collect": "fuse.flagged_load",
        "fuse.relayout": "fuse.convert_layout",
        "fuse.pin": "fuse.optimization_barrier",
    },
    "attribute": {
        "fuse.finish": "fuse.second_stage",
        "fuse.grid_finish": "fuse.grid_reduction",
    },
}
"""By kind, new names by old ones.

- `option`: keyword arguments of `mf.fuse`.
- `value`: strings that an option, a pass option or a field of a schedule takes.
- `field`: fields of schedules and of what they consist of, in Python and in `fuse.schedule`.
- `pass`, `pass option`: as a pipeline has them, with dashes.
- `op`, `attribute`: with the dialect's prefix, `fuse.`.
"""

TARGET_OPTIONS = ("target", "chip", "sms")
"""Options of passes up to 0.1, in place of which passes read the attribute `fuse.target` of the module."""

_Class = TypeVar("_Class", bound=type)


def renamed(kind: Kind, name: object) -> str | None:
    """The new name of an old one, as the hint of an error; None for a name that was never in use."""
    if kind == "pass option" and name in TARGET_OPTIONS:
        return f"{name} is read from the attribute fuse.target of the module now: mlirfuse-opt --target=CHIP --sms=N"
    new = RENAMED[kind].get(name) if isinstance(name, str) else None
    return None if new is None else f"{name} was renamed to {new} in mlirfuse 0.2"


def renamed_value(value: object, known: Collection[str]) -> str | None:
    """The new name of an old value where it is one of the known ones; None otherwise."""
    new = RENAMED["value"].get(value) if isinstance(value, str) else None
    return renamed("value", value) if new in known else None


def not_one_of(field: str, value: object, known: Collection[str]) -> str:
    """The error text for a field of a schedule whose value is none of the known ones."""
    hint = renamed_value(value, known)
    return f"{field} {value!r} is not one of {', '.join(known)}" + (f" ({hint})" if hint else "")


def refuses_old_fields(cls: _Class) -> _Class:
    """Class decorator: use of a field's old name raises an error that gives the new name.

    The constructor raises `ScheduleError`, access raises `AttributeError`.
    """
    changed: Any = cls
    made: Callable[..., None] = changed.__init__

    @wraps(made)
    def construct(self: Any, *args: Any, **named: Any) -> None:
        try:
            made(self, *args, **named)
        except TypeError:
            known = {field.name for field in fields(cls)}
            for hint in (renamed("field", name) for name in named if name not in known):
                if hint is not None:
                    raise ScheduleError(f"{cls.__name__} has no such field", hint=hint) from None
            raise

    def missing(self: Any, name: str) -> Any:
        raise AttributeError(renamed("field", name) or f"{cls.__name__!r} object has no attribute {name!r}")

    changed.__init__, changed.__getattr__ = construct, missing
    return cls

"""The options of `mf.fuse`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches
from typing import Literal, TypedDict, get_args

from mlirfuse.errors import ArgumentError
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.renamed_names import renamed, renamed_value
from mlirfuse.target import Target

MixOrder = Literal["auto", "fused", "split"]
"""How to compile reductions over different dimensions of the same data; see `fuse`."""

GridReductionKind = Literal["auto", "grid_sync", "last_block", "second_kernel", "atomics"]
"""The second stage of grid reductions; see `fuse`."""


Fusion = Literal["auto", "off"]
"""Whether operations share kernels; see `fuse`."""


class Options(TypedDict, total=False):
    """The keyword arguments of `fuse`, which documents them."""

    target: str | Target | None
    schedule: Schedule | Mapping[str, Schedule] | None
    fast_math: bool
    mix_order: MixOrder
    grid_reduction: GridReductionKind
    dynamic_products: bool
    dynamic_reductions: bool
    fusion: Fusion
    tune: bool


def check_names(options: Iterable[str]) -> None:
    """Raises `ArgumentError` for a name that is no option of `fuse`."""
    known = list(Options.__annotations__)
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"{f'did you mean {close[0]}? ' if close else ''}options: {', '.join(known)}"
            raise ArgumentError(f"there is no option {name!r}", where="fuse", hint=renamed("option", name) or hint)


def check_options(options: Options) -> None:
    """Raises `ArgumentError` where the value of an option is invalid; `target_of` checks the target."""
    schedule = options["schedule"]
    if not _is_schedule(schedule):
        hint = "a Schedule, or a dictionary of them by kernel name"
        raise ArgumentError(f"schedule is {schedule!r}", where="fuse", hint=hint)
    choices = {
        "mix_order": get_args(MixOrder),
        "grid_reduction": get_args(GridReductionKind),
        "fusion": get_args(Fusion),
    }
    choices |= dict.fromkeys(("fast_math", "dynamic_products", "dynamic_reductions", "tune"), (False, True))
    for name, allowed in choices.items():
        given = options[name]  # type: ignore[literal-required]  # they are its keys
        if not isinstance(given, Hashable) or given not in allowed:  # an array's comparison is no bool
            hint = renamed_value(given, allowed) or f"one of {', '.join(map(str, allowed))}"
            raise ArgumentError(f"{name} is {given!r}", where="fuse", hint=hint)
    if options["fusion"] == "off" and options["mix_order"] == "fused":
        hint = "leave one of them out"
        raise ArgumentError("mix_order='fused' asks for fusion, and fusion is 'off'", where="fuse", hint=hint)


def _is_schedule(schedule: object) -> bool:
    if isinstance(schedule, Mapping):
        return all(isinstance(name, str) and isinstance(entry, Schedule) for name, entry in schedule.items())
    return schedule is None or isinstance(schedule, Schedule)

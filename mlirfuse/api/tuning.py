"""Tuning a fused function for the arguments of a call: what `mf.fuse(tune=True)` and `mlirfuse tune` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress

from mlirfuse.api.argument_specs import gpu_specs
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime import tuning
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo
from mlirfuse.runtime.search import Search, Tuned
from mlirfuse.schedule.choice.records import VARIABLE, records_path

if TYPE_CHECKING:
    from mlirfuse.api.fused import Fused

FIRST_CALL_SECONDS = 20.0
"""Time that `tune=True` may take for a new signature."""


def tune_first_call(fused: Fused[..., Any], lowered: Lowered, arguments: Sequence[Argument]) -> list[Tuned]:
    """Measures those kernels of a function that have no record, for about `FIRST_CALL_SECONDS` at most.

    A bar on stderr shows the progress where that is a terminal.

    Args:
        fused: the function.
        lowered: the function for the call's signature and the current device.
        arguments: of the call.

    Raises:
        ArgumentError: records are switched off, or CuPy has no arrays of an argument's dtype.
    """
    if records_path() is None:
        hint = f"set {VARIABLE} to a file, or leave tune=True out"
        raise ArgumentError(f"tune=True keeps what it finds on disk, and {VARIABLE} is off", where="fuse", hint=hint)
    return tune(fused, lowered, arguments, FIRST_CALL_SECONDS, Console(stderr=True), again=False)


def tune(
    fused: Fused[..., Any],
    lowered: Lowered,
    arguments: Sequence[Argument],
    seconds: float,
    console: Console,
    *,
    again: bool,
) -> list[Tuned]:
    """Tunes a function for the signature of some arguments, and stores what is fastest (`runtime/search.py`).

    Args:
        fused: the function.
        lowered: the function for this signature and the current device.
        arguments: say what random arrays it is measured on.
        seconds: time for all kernels together.
        console: where a bar shows the progress, if it is a terminal.
        again: whether kernels that have a record are measured too.
    """
    sets: list[list[Any]] = []

    def begin() -> tuple[Compiled, Callable[[], float]]:
        anew = fused.with_options(tune=False)
        anew._compilations.varies = False  # kernels for the numbers of a call have other problems than what is tuned
        compiled = anew._compile(lambda extents: gpu_specs(arguments, extents), lowered.target, lowered.device)

        def measure() -> float:
            sets.extend(() if sets else tuning.random_arguments(arguments))
            microseconds = tuning.measure(anew, sets)
            assert len(anew._compiled) == 1, "what was measured has another signature than what was compiled"
            return microseconds

        return compiled, measure

    elements = max((prod(a.shape) for a in arguments if isinstance(a, ArrayInfo)), default=1)
    search = Search(begin, lowered, fused._grid_reduction, elements, seconds)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        return list(search.run(progress, again=again))

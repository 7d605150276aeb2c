"""Host time of warm calls of einsums and views, against a bare CuPy launch of a kernel with as many arrays.

The six cases of lightning-thunder's issue 193 in float32, with and without `out=`, and functions that return views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from survey_programs.einsums import THUNDER
from survey_programs.program import Program

import mlirfuse as mf

Call = Callable[[], object]

BARE = "bare CuPy launch"
WITH_OUT, ALLOCATING, VIEW = 1.2, 1.6, 0.6
"""Most of a bare launch's time that a warm call may take that writes to `out=`, one that allocates its result, and one
that returns a view: 6, 8 and 3 us where a bare launch takes 5."""

FIRST_CALL, FIRST_CHAIN = 0.5, 1.0
"""Seconds of a first call of two operands at most, and of three or more."""

VIEWS: dict[str, Callable[..., Any]] = {
    "transpose": lambda x: mf.einsum("bij->jbi", x),
    "diagonal": lambda x: mf.einsum("bii->bi", x),
    "reshape": lambda x: x.reshape((-1, x.shape[-1])),
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class Limit:
    """A target of a measured time.

    Attributes:
        name: what was measured.
        value: the time, in `unit`.
        most: what it should be at most.
        unit: `s`, or `of a bare launch`.
    """

    name: str
    value: float
    most: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.most


def thunder(programs: Sequence[Program]) -> list[Program]:
    """The six cases in float32."""
    found = [program for program in programs if program.domain == "einsum thunder" and " f32 " in program.name]
    return found[: len(THUNDER)]


def calls(programs: Sequence[Program]) -> Iterator[tuple[str, Call]]:
    """(name, call) of everything measured, on CuPy arrays."""
    import cupy
    import numpy as np

    yield BARE, _bare(cupy)
    for program in thunder(programs):
        equation = program.name.split()[0]
        arrays = [cupy.ones(argument.shape, np.float32) for argument in program.arguments()]
        fused, into = (mf.fuse(lambda *xs, e=equation: mf.einsum(e, *xs)) for _ in range(2))
        out = fused(*arrays)
        yield program.name, lambda f=fused, a=arrays: f(*a)
        yield f"{program.name}, out=", lambda f=into, a=arrays, o=out: f(*a, out=o)
    x = cupy.ones((4, 16, 16), np.float32)
    for name, function in VIEWS.items():
        fused = mf.fuse(function)
        yield f"view: {name}", lambda f=fused: f(x)


def _bare(cupy: Any) -> Call:
    """A `cupy.RawKernel` of two arrays and a result, launched on arrays that exist."""
    source = """extern "C" __global__ void add(const float* x, const float* y, float* r) {
        int i = threadIdx.x; r[i] = x[i] + y[i]; }"""
    kernel, arrays = cupy.RawKernel(source, "add"), tuple(cupy.ones(256, "float32") for _ in range(3))
    return lambda: kernel((1,), (256,), arrays)


def host_limits(measured: Mapping[str, float]) -> list[Limit]:
    """The targets of host times, in microseconds by name, with that of `BARE` among them."""
    found = []
    for name, us in measured.items():
        if name != BARE:
            most = VIEW if name.startswith("view: ") else WITH_OUT if name.endswith("out=") else ALLOCATING
            found.append(Limit(name, us / measured[BARE], most, "of a bare launch"))
    return found


def first_call_limits(rows: Sequence[Mapping[str, Any]]) -> list[Limit]:
    """The targets of first calls, of the survey's rows."""
    found = []
    for row in rows:
        seconds = row.get("first_call_seconds", {}).get("mlirfuse")
        if seconds is not None:
            chain = row["name"].split("->")[0].count(",") > 1
            found.append(Limit(f"first call: {row['name']}", seconds, FIRST_CHAIN if chain else FIRST_CALL, "s"))
    return found

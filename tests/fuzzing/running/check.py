"""Compares results with their bounds, and sorts what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.types import FORMATS, kind, numpy_dtype

RIGHT, WRONG, CRASH, REFUSED, TIMEOUT = "right", "wrong", "crash", "refused", "timeout"

INTERNAL = (
    "PassError",
    "ScheduleError",
    "UnreadExtentError",
    "IRError",
    "CompileError",
    "PipelineError",
    "NeedsStatic",
)
"""Errors of mlirfuse that no program should meet."""


@dataclass
class Outcome:
    """What became of a program.

    Attributes:
        kind: `right`, `wrong`, `crash`, `refused` or `timeout`.
        message: what was said.
        signature: the message without what differs from program to program.
        kernels: how many were compiled.
        again: how many of them were compiled with several schedules.
        spills: (kernel, bytes) of those that spill.
        declined: calls that were refused, of a program that is right otherwise: signatures.
    """

    kind: str
    message: str = ""
    signature: str = ""
    kernels: int = 0
    again: int = 0
    spills: list[tuple[str, int]] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)


class WrongResult(Exception):
    """A result is not what the reference allows."""


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a program that raised."""
    name = type(error).__name__
    text = str(error)
    where = _place(error)
    if isinstance(error, WrongResult):
        return Outcome(WRONG, text, signature(text.splitlines()[0]))
    if name == "InterpreterError":
        return Outcome(WRONG, text, f"{name}: {signature(_message(error))}")
    ours = any(base.__name__ == "MlirFuseError" for base in type(error).__mro__)
    if ours and name not in INTERNAL and name != "RuntimeLaunchError":
        return Outcome(REFUSED, text, f"{name}: {signature(_message(error))}")
    return Outcome(CRASH, f"{name}: {text}\n{where}", f"{name}: {signature(_message(error))} [{where}]")


def _message(error: BaseException) -> str:
    text = getattr(error, "message", None) or str(error)
    return text.splitlines()[0] if text else ""


def _place(error: BaseException) -> str:
    """The innermost frame of mlirfuse."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "mlirfuse" in file:
            place = f"{file.rsplit('mlirfuse/', 1)[-1]}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return place


def signature(message: str) -> str:
    """A message without numbers, names and shapes."""
    text = re.sub(r"'[^']*'", "'...'", message)
    text = re.sub(r"(?<=[@%])[\w.#]+", "name", text)
    text = re.sub(r"\b[vx]\d+\b", "v", text)
    text = re.sub(r"\(?\b\d+(?:(?:, ?|x)\d+)*,?\b\)?", "N", text)
    return re.sub(r"\s+", " ", text)[:160]


def check(results: Sequence[Any], expected: Sequence[Bounded], where: str) -> None:
    """Raises `WrongResult` where a result is not within its bound."""
    if len(results) != len(expected):
        raise WrongResult(f"{where}: {len(results)} results, not {len(expected)}")
    for number, (got, want) in enumerate(zip(results, expected, strict=True)):
        problem = difference(np.asarray(got), want)
        if problem:
            raise WrongResult(f"{where}: {problem}\nresult {number}")


def difference(got: np.ndarray, want: Bounded) -> str | None:
    """What is wrong with a result, or None."""
    if got.dtype != numpy_dtype(want.dtype):
        return f"dtype {got.dtype}, not {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    with np.errstate(all="ignore"):
        bad = wrong_elements(got, want)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    value, bound = want.value[at], want.error[at]
    what = sort_of_difference(got[bad], want.value[bad], want.dtype)
    share = f"{np.count_nonzero(bad)} of {bad.size}"
    return f"{what}\n{share} elements of {want.dtype}; at {at}: {got[at]} instead of {value} (bound {bound:.3g})"


def wrong_elements(got: np.ndarray, want: Bounded) -> np.ndarray:
    if kind(want.dtype) != "float":
        return np.asarray((got != want.value) & want.known)
    number = got.astype(np.float64)
    same = (number == want.value) | (np.isnan(number) & np.isnan(want.value))
    slack = want.error * (1 + 2.0**-10)
    return np.asarray(~(same | (np.abs(number - want.value) <= slack)) & want.known)


def sort_of_difference(got: np.ndarray, value: np.ndarray, dtype: str) -> str:
    """In a few words, which become a part of the signature."""
    if kind(dtype) != "float":
        return f"wrong {dtype}"
    number = got.astype(np.float64)
    if np.all(np.isnan(number)):
        return "NaN where there is none"
    if np.all(np.isnan(value)):
        return "a number where NaN should be"
    if np.all(~np.isfinite(number) | ~np.isfinite(value)):
        return "infinities differ"
    normal = 2.0 ** FORMATS[dtype].smallest
    if np.all((number == 0) & (np.abs(value) < normal)):
        return "subnormals are flushed"
    finite = np.isfinite(number) & np.isfinite(value)
    apart = np.abs(number[finite] - value[finite]) / np.maximum(np.abs(value[finite]), normal)
    return f"off by {'little' if apart.max() < 64 * 2.0 ** -FORMATS[dtype].digits else 'much'} in {dtype}"

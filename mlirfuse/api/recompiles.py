"""Why calls of a function had a new signature: what differs from the nearest known one (`MLIRFUSE_LOG=recompiles`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlirfuse.api.argument_specs import name_of
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo, ScalarInfo, StaticInfo
from mlirfuse.support.dtypes import dtype_of
from mlirfuse.support.log import RECOMPILES

MOST_KNOWN = 256
"""Signatures that are remembered, the latest."""


class Signatures:
    """The signatures of a function's calls so far.

    Args:
        function: its name.
        names: those of its parameters.
    """

    def __init__(self, function: str, names: Sequence[str]):
        self._function, self._names = function, names
        self._known: list[tuple[Argument, ...]] = []

    def note(self, arguments: Sequence[Argument], *, compiled: bool, reasons: Sequence[str] = ()) -> None:
        """Logs a call with a new signature, and remembers it.

        Args:
            arguments: those of the call.
            compiled: whether the function was compiled for them; otherwise code was known.
            reasons: why extents are numbers of the compilation.
        """
        given = tuple(arguments)
        if RECOMPILES.isEnabledFor(20):  # logging.INFO
            what = "is compiled" if compiled else "runs known code"
            RECOMPILES.info("%s %s: %s", self._function, what, "; ".join([self._why(given), *reasons]))
        self._known = [*self._known[-MOST_KNOWN + 1 :], given]

    def note_arrays(self, arguments: Sequence[Any], *, compiled: bool, reasons: Sequence[str] = ()) -> None:
        """`note` for NumPy arrays, numbers and constants."""
        if compiled:
            self.note([_described(argument) for argument in arguments], compiled=True, reasons=reasons)

    def _why(self, given: tuple[Argument, ...]) -> str:
        if not self._known:
            return "the first call"
        found = [list(self._differences(given, known)) for known in self._known]
        nearest = min(found[::-1], key=lambda differences: len(differences))
        return "; ".join(nearest) or "only an address differs"

    def _differences(self, given: tuple[Argument, ...], known: tuple[Argument, ...]) -> Iterator[str]:
        if len(given) != len(known):
            yield f"{len(given)} arguments, were {len(known)}"
        for number, (new, old) in enumerate(zip(given, known, strict=False)):
            for difference in differences(new, old):
                yield f"{name_of(self._names, number)}: {difference}"


def differences(new: Argument, old: Argument) -> Iterator[str]:
    """What is different in an argument, in the words of the log."""
    if isinstance(new, ArrayInfo) and isinstance(old, ArrayInfo):
        yield from _of_arrays(new, old)
    elif type(new) is not type(old) or new != old:
        yield f"{_kind(new)}, was {_kind(old)}"


def _of_arrays(new: ArrayInfo, old: ArrayInfo) -> Iterator[str]:
    for what, now, before in (
        ("dtype", new.dtype.name, old.dtype.name),
        ("device", new.device, old.device),
        ("framework", new.framework, old.framework),
        ("dimensions:", len(new.shape), len(old.shape)),
    ):
        if now != before:
            yield f"{what} {now}, was {before}"
    for dim, (now, before) in enumerate(zip(new.shape, old.shape, strict=False)):
        if now != before:
            yield f"dimension {dim} is {now}, was {before}"
    if new.is_contiguous != old.is_contiguous:
        layouts = [f"strides {info.strides}" if not info.is_contiguous else "contiguous" for info in (new, old)]
        yield f"{layouts[0]}, was {layouts[1]}"
    elif not new.is_contiguous:
        for dim, (now, before) in enumerate(zip(new.strides, old.strides, strict=False)):
            if now != before:
                yield f"stride {dim} is {now}, was {before}"
    if new.alignment != old.alignment:
        yield f"aligned to {new.alignment} bytes, was {old.alignment}"


def _kind(argument: Argument) -> str:
    if isinstance(argument, StaticInfo):
        return repr(argument.value)
    return argument.kind if isinstance(argument, ScalarInfo) else "an array"


def _described(argument: Any) -> Argument:
    """An argument of the interpreter."""
    if isinstance(argument, np.ndarray):
        strides = tuple(stride // argument.itemsize for stride in argument.strides)
        return ArrayInfo(argument.ctypes.data, argument.shape, strides, dtype_of(argument.dtype), 0, "numpy")
    for kind, types in (("bool", bool | np.bool_), ("int", int | np.integer), ("float", float | np.floating)):
        if isinstance(argument, types):
            return ScalarInfo(kind)
    return StaticInfo(argument)

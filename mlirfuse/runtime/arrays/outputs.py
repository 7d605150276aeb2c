"""The caller's output arrays: checks of overlap, and copies into arrays that kernels cannot write directly.

Kernels write C-contiguous memory (or that of a transposed result), aligned as new arrays are. An output array with
other strides, for instance reversed or transposed ones, or less alignment gets a copy of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import ALIGNMENT, Argument, ArrayInfo
from mlirfuse.runtime.arrays.layout import CallLayout, Result
from mlirfuse.runtime.device import cuda

Submit = Callable[[Sequence[Any], int], None]

_MOST_WORK = 100_000
"""Limit of the search for an element that two arrays share; beyond it they count as overlapping."""


@dataclass(frozen=True)
class _Placed:
    """An array of a call.

    Attributes:
        word: the position of its pointer among the words of a call.
        info: its shape and strides; its pointer is that of another call.
        begin: bytes from the pointer to its first byte, 0 or less.
        end: bytes from the pointer to behind its last byte.
    """

    word: int
    info: ArrayInfo
    begin: int
    end: int

    @classmethod
    def at(cls, word: int, info: ArrayInfo) -> _Placed:
        return cls(word, info, *info.span)

    def overlaps(self, other: _Placed, words: Sequence[Any]) -> bool:
        """Whether two arrays share memory, at the addresses in a call's words."""
        first, second = words[self.word], words[other.word]
        if first + self.begin >= second + other.end or second + other.begin >= first + self.end:
            return False
        if self.info.is_contiguous and other.info.is_contiguous:
            return True
        try:
            arrays = _stand_in(self.info, first), _stand_in(other.info, second)
            return np.shares_memory(*arrays, max_work=_MOST_WORK)  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return True


class _Interface:
    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


def _stand_in(info: ArrayInfo, pointer: int) -> np.ndarray:
    """A NumPy array at the address of a GPU array, for overlap checks alone; its elements must not be accessed."""
    size = info.dtype.bytes
    strides = tuple(s * size for s in info.strides)
    interface = {"data": (pointer, True), "shape": info.shape, "strides": strides, "typestr": f"|V{size}", "version": 3}
    return np.asarray(_Interface(interface))


class OutputPlan:
    """Writes the results of a launch plan into arrays of certain shapes and strides.

    Args:
        layout: the call.
        submit: launches its kernels, for its words and a stream.
        current_stream: gives the stream of a call that names none.
        out: what the caller gives, one array a result.

    Raises:
        ArgumentError: a result does not fit into the array given for it.
    """

    def __init__(
        self,
        layout: CallLayout,
        submit: Submit,
        current_stream: Callable[[], int],
        out: Sequence[Argument],
        device: int,
    ):
        results, self._where = layout.results, f"{layout.program.name}: out"
        if len(out) != len(results):
            raise ArgumentError(f"expected {len(results)} arrays, got {len(out)}", where=self._where)
        arrays = [_fitting(result, given, device, self._where) for result, given in zip(results, out, strict=True)]
        self._submit, self._current_stream, self._device = submit, current_stream, device
        count = len(layout.arguments)
        inputs = [_Placed.at(i, a) for i, a in enumerate(layout.arguments) if isinstance(a, ArrayInfo)]
        self._outputs = [_Placed.at(count + i, info) for i, info in enumerate(arrays)]
        self._apart_from = [
            (output, [other for other in (*inputs, *self._outputs) if other is not output and other.end])
            for output in self._outputs
            if output.end
        ]
        self._copied = [
            (placed, result)
            for placed, result in zip(self._outputs, results, strict=True)
            if placed.end and not _is_written(result, placed.info)
        ]
        # The last pointers that did not overlap, as most callers use the same buffers again.
        self._apart: Sequence[Any] = ()

    def run(self, values: Sequence[Any], stream: int | None) -> None:
        """Launches into the caller's arrays.

        Args:
            values: the arguments' pointers and numbers, then the pointers of the outputs.
            stream: the stream's pointer; None is the framework's current one.

        Raises:
            ArgumentError: an output overlaps an argument, or another output.
            RuntimeLaunchError: the driver refuses the launch.
        """
        self.require_apart(values)
        pointer = self._current_stream() if stream is None else stream
        if not self._copied:
            self._submit(values, pointer)
            return
        with cuda.on_device(self._device), cuda.on_stream(pointer):
            words = list(values)
            made = [cuda.bits(result.base, result.dtype.bytes) for _, result in self._copied]
            for (placed, _), array in zip(self._copied, made, strict=True):
                words[placed.word] = array.data.ptr
            self._submit(words, pointer)
            for (placed, result), array in zip(self._copied, made, strict=True):
                source, span = array.transpose(result.axes), (placed.begin, placed.end)
                cuda.copy_bits(source, values[placed.word], placed.info.strides, span)

    @property
    def is_direct(self) -> bool:
        """Whether kernels write all outputs in place."""
        return not self._copied

    def require_apart(self, values: Sequence[Any]) -> None:
        """Raises `ArgumentError` where an output overlaps an argument or another output, at these pointers."""
        if values == self._apart:
            return
        if any(output.overlaps(other, values) for output, others in self._apart_from for other in others):
            raise ArgumentError(
                "overlaps an argument or another output",
                where=self._where,
                hint="give memory of its own: a block may write what another has yet to read",
            )
        self._apart = values


def _fitting(result: Result, given: Argument, device: int, where: str) -> ArrayInfo:
    """The array given for a result; raises `ArgumentError` where the result does not fit into it."""
    if not isinstance(given, ArrayInfo):
        raise ArgumentError("expected an array", where=where)
    shape = result.shape
    problem, hint = None, None
    if (given.dtype, given.shape) != (result.dtype, shape):
        problem = f"expected {result.dtype.name} {shape}, got {given.dtype.name} {given.shape}"
    elif given.device != device:
        problem = f"is on device {given.device}, the arguments are on {device}"
    elif prod(shape) and any(n > 1 and not s for n, s in zip(shape, given.strides, strict=True)):
        problem = f"has strides {given.strides}: several elements are one in memory"
        hint = "give an array, not a broadcast one"
    if problem:
        raise ArgumentError(problem, where=where, hint=hint)
    return given


def _is_written(result: Result, given: ArrayInfo) -> bool:
    """Whether kernels can write a result directly into a caller's array."""
    same = all(n == 1 or a == b for n, a, b in zip(result.shape, given.strides, result.strides, strict=True))
    return same and given.pointer % ALIGNMENT == 0

"""A debug mode that finds results which no kernel writes: their memory is poisoned before the launches, and read after.

An element that still equals the poison may be a result by chance. The kernels then run again over another poison; an
element that equals both was not written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.arrays.layout import CallLayout
from mlirfuse.runtime.device.cuda import cupy, guarded
from mlirfuse.support.dtypes import DType

CHECK = "MLIRFUSE_CHECK_RESULTS"
"""Environment variable: 1 poisons the memory of results before each call's launches, and checks afterwards that all of
it was written; each call then waits.

It is read when a launch plan is made.
"""

POISONS = (0xA5, 0x5A)
"""The poison bytes of the first and of the second run."""

_DEVICE_TO_HOST = 2  # cudaMemcpyDeviceToHost

Submit = Callable[[Sequence[Any], int], None]


def checks_results() -> bool:
    """Whether results are to be checked."""
    return os.environ.get(CHECK, "0") not in ("", "0")


def with_checked_results(submit: Submit, layout: CallLayout, device: int) -> Submit:
    """Adds the check to a function that launches a call's kernels.

    The words of a call are its arguments and then the pointers of the buffers that are results, in order of
    `layout.outputs`. A stream that is being captured runs nothing yet, and is not checked.

    The function that is returned raises `RuntimeLaunchError` for a result with elements that no kernel wrote.
    """
    results = [_buffer(layout, position) for position in layout.outputs]
    first_word = len(layout.arguments)

    def run(words: Sequence[Any], stream: int, poison: int) -> list[np.ndarray]:
        """Launches over poisoned memory; returns a mask of the unchanged elements of each buffer."""
        for word, (_, result) in enumerate(results, start=first_word):
            _fill(words[word], _bytes(result), poison, stream)
        submit(words, stream)
        return [_untouched(words[word], result, poison, stream) for word, (_, result) in enumerate(results, first_word)]

    def submit_and_check(words: Sequence[Any], stream: int) -> None:
        if cupy().cuda.runtime.streamIsCapturing(stream):
            submit(words, stream)
            return
        untouched = run(words, stream, POISONS[0])
        if not any(found.any() for found in untouched):
            return
        for (number, result), first, second in zip(results, untouched, run(words, stream, POISONS[1]), strict=True):
            if (first & second).any():
                raise _unwritten(layout, number, result, first & second)

    return guarded(submit_and_check, device)


@dataclass(frozen=True)
class _Buffer:
    """A buffer that results show: the number of one of them, and the shape and order in which errors tell of it."""

    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[int, ...]


def _buffer(layout: CallLayout, position: int) -> tuple[int, _Buffer]:
    """A buffer as the first result shows it that is the whole of it, and that result's number."""
    number, result = layout.whole(position)
    if result is not None and result.axes is not None:
        return number, _Buffer(result.dtype, result.base, result.axes)
    shape = layout.buffers[position]
    return number, _Buffer(layout.program.buffers[position].dtype, shape, tuple(range(len(shape))))


def _bytes(result: _Buffer) -> int:
    return prod(result.shape) * result.dtype.bytes


def _fill(pointer: int, nbytes: int, value: int, stream: int) -> None:
    if nbytes:
        cupy().cuda.runtime.memsetAsync(pointer, value, nbytes, stream)


def _untouched(pointer: int, result: _Buffer, poison: int, stream: int) -> np.ndarray:
    """A mask of the elements of a result that hold only poison, in the shape of its buffer; waits for the stream."""
    held = np.empty((prod(result.shape), result.dtype.bytes), np.uint8)
    if held.size:
        runtime = cupy().cuda.runtime
        runtime.memcpyAsync(held.ctypes.data, pointer, held.nbytes, _DEVICE_TO_HOST, stream)
        runtime.streamSynchronize(stream)
    return np.asarray((held == poison).all(axis=1).reshape(result.shape))


def _unwritten(layout: CallLayout, number: int, result: _Buffer, unwritten: np.ndarray) -> RuntimeLaunchError:
    """The error that names the result, how many of its elements were not written, and the first of them."""
    seen = unwritten.transpose(result.axes)
    first = tuple(int(i) for i in np.argwhere(seen)[0])
    shape = "x".join(map(str, seen.shape)) or "a number"
    return RuntimeLaunchError(
        f"no kernel wrote {np.count_nonzero(seen)} of the {seen.size} elements of result {number} "
        f"({result.dtype.name}, {shape}), the first at index {first}",
        where=layout.program.name,
        hint="this is a bug in mlirfuse: please report the function and the shapes of its arguments",
    )

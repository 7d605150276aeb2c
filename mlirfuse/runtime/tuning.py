"""Measures a fused function on the GPU, for tuning."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo, ScalarInfo
from mlirfuse.runtime.device.cuda import cupy

COLD_BYTES, MOST_SETS = 256 << 20, 256
"""Bounds of a measurement. Calls rotate over sets of arguments whose total is far larger than the L2."""

GRAPH_US = 600.0
LAUNCHES = 5

RANDOM_ELEMENTS = 1 << 20
"""Different random numbers of an array; a larger one repeats them."""

ALIGNMENT = 256
"""Bytes that CuPy aligns memory to, and that a pointer is compared with."""

NUMBERS = {"float": 1.0, "int": 1, "bool": True}
"""The values of arguments that are Python numbers, by kind."""


def random_arguments(arguments: Sequence[Argument]) -> list[list[Any]]:
    """Sets of arguments of the same signature as a call's, with random device arrays, enough to exceed the L2 in all.

    There are 2 sets at least and `MOST_SETS` at most. Arrays have the shapes, strides and alignment of the call's.

    Raises:
        ArgumentError: a dtype that CuPy does not have.
    """
    arrays = [argument for argument in arguments if isinstance(argument, ArrayInfo)]
    if unknown := [array.dtype.name for array in arrays if array.dtype.is_float8]:
        raise ArgumentError(f"CuPy has no arrays of {unknown[0]}", hint="pass a schedule to mf.fuse instead of tuning")
    nbytes = sum(array.span[1] - array.span[0] for array in arrays)
    count = min(MOST_SETS, max(2, -(-COLD_BYTES // max(nbytes, 1))))
    rng = np.random.default_rng(0)
    values = [_values(rng, argument) if isinstance(argument, ArrayInfo) else None for argument in arguments]
    pairs = list(zip(arguments, values, strict=True))
    return [[_argument(argument, array) for argument, array in pairs] for _ in range(count)]


def _values(rng: np.random.Generator, info: ArrayInfo) -> Any:
    """Random numbers on the device for all memory between an array's first and last element."""
    count = (info.span[1] - info.span[0]) // info.dtype.bytes
    few = min(count, RANDOM_ELEMENTS)
    dtype = info.dtype.numpy
    values = rng.integers(-3, 4, few) if dtype.kind in "iu" else rng.standard_normal(few, np.float32)
    return cupy().asarray(np.resize(values.astype(dtype), count))


def _argument(argument: Argument, values: Any) -> Any:
    """An argument of a call: a copy of values in an array as it is described, a number, or a constant."""
    if isinstance(argument, ScalarInfo):
        return NUMBERS[argument.kind]
    if not isinstance(argument, ArrayInfo):
        return argument.value
    gpu, first = cupy(), argument.span[0]
    start = (argument.pointer + first) % ALIGNMENT
    memory = gpu.empty(start + values.nbytes, np.uint8).data + start
    memory.copy_from_device(values.data, values.nbytes)
    strides = tuple(stride * values.itemsize for stride in argument.strides)
    return gpu.ndarray(argument.shape, values.dtype, memory - first, strides)


def measure(call: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> float:
    """Median time of a call in microseconds, from a replayed graph of calls that rotate over the sets."""
    gpu = cupy()
    stream = _stream(gpu.cuda.Device().id)
    with stream:
        outputs = [call(*arguments, stream=stream) for arguments in sets]
        stream.synchronize()
        once = _elapsed(stream, lambda: _call_all(call, sets, outputs, stream))
        repetitions = max(1, round(GRAPH_US / max(once, 1.0)))
        stream.begin_capture()
        for _ in range(repetitions):
            _call_all(call, sets, outputs, stream)
        graph = stream.end_capture()
        graph.launch(stream)
        times = [_elapsed(stream, lambda: graph.launch(stream)) for _ in range(LAUNCHES)]
    return statistics.median(times) / (repetitions * len(sets))


@cache
def _stream(device: int) -> Any:
    """The stream of all measurements on a device: CuPy keeps freed memory for later use by the same stream only."""
    with cupy().cuda.Device(device):
        return cupy().cuda.Stream(non_blocking=True)


def _call_all(call: Callable[..., Any], sets: Sequence[Sequence[Any]], outputs: Sequence[Any], stream: Any) -> None:
    for arguments, output in zip(sets, outputs, strict=True):
        call(*arguments, out=tuple(output) if isinstance(output, list) else output, stream=stream)


def _elapsed(stream: Any, launch: Callable[[], Any]) -> float:
    gpu = cupy()
    begin, end = gpu.cuda.Event(), gpu.cuda.Event()
    begin.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return float(gpu.cuda.get_elapsed_time(begin, end)) * 1e3

"""Measures a fused function on the GPU, for `mlirfuse tune`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.device.cuda import cupy
from mlirfuse.support.dtypes import dtype_of

COLD_BYTES, MOST_SETS = 256 << 20, 256
"""Bounds of a measurement. Calls rotate over sets of arguments whose total is far larger than the L2."""

GRAPH_US = 600.0
LAUNCHES = 5


def random_arguments(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype]) -> list[list[Any]]:
    """Sets of random device arrays, enough to exceed the L2 in all: 2 at least, `MOST_SETS` at most.

    Raises:
        ArgumentError: a dtype that CuPy does not have.
    """
    if unknown := [dtype.name for dtype in dtypes if dtype_of(dtype).is_float8]:
        raise ArgumentError(f"CuPy has no arrays of {unknown[0]}", hint="pass a schedule to mf.fuse instead of tuning")
    nbytes = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True))
    count = min(MOST_SETS, max(2, -(-COLD_BYTES // max(nbytes, 1))))
    rng = np.random.default_rng(0)
    first = [_array(rng, shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return [first, *([_copy(array) for array in first] for _ in range(count - 1))]


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    values = rng.integers(-3, 4, shape) if dtype.kind in "iu" else rng.standard_normal(shape, np.float32)
    return cupy().asarray(values.astype(dtype))


def _copy(array: Any) -> Any:
    copy = cupy().empty_like(array)
    copy.data.copy_from_device(array.data, array.nbytes)
    return copy


def measure(call: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> float:
    """Median time of a call in microseconds, from a replayed graph of calls that rotate over the sets."""
    gpu = cupy()
    stream = gpu.cuda.Stream(non_blocking=True)
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

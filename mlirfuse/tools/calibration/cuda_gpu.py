"""A CUDA device that microbenchmarks run on."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import tuning
from mlirfuse.runtime.device import driver, tensor_maps
from mlirfuse.runtime.device.cuda import cupy, device_target, on_device, require_context
from mlirfuse.runtime.device.module import load_function
from mlirfuse.support.dtypes import dtype_of
from mlirfuse.target import Target
from mlirfuse.tools.calibration.benchmark import Gpu, Launch
from mlirfuse.tools.calibration.kernel import Kernel

ROUNDS = 5
WARM_SECONDS = 0.2
"""Time for which a compiled function is called before it counts: clocks and power limits have settled."""

_L2_BYTES = 38  # cudaDevAttrL2CacheSize
_BLOCK_BYTES = 4 << 20
"""Bytes of random numbers that are made on the host, and repeated."""

Arguments = tuple[Any, ...]


class CudaGpu(Gpu):
    """A device of this machine.

    Args:
        device: its CUDA number.

    Raises:
        RuntimeLaunchError: there is no such device.
    """

    def __init__(self, device: int = 0):
        runtime = cupy().cuda.runtime
        if not 0 <= device < runtime.getDeviceCount():
            raise RuntimeLaunchError(f"there is no CUDA device {device}")
        runtime.setDevice(device)
        require_context()
        self.device, self.target = device, device_target(device)
        self.l2_bytes = int(runtime.deviceGetAttribute(_L2_BYTES, device))
        self.memory_bytes = int(runtime.memGetInfo()[0])
        self._stream = cupy().cuda.Stream(non_blocking=True)
        self._random = np.random.default_rng(0)
        self._loaded: dict[Kernel, int] = {}
        self._kept: list[Any] = []
        self._memory: Any = None
        self._scratch = self._allocate(self.SCRATCH, np.zeros(self.SCRATCH, np.uint8))

    @cached_property
    def _bits(self) -> np.ndarray:
        return self._random.integers(0, 256, _BLOCK_BYTES, np.uint8)

    def buffer(self, nbytes: int, start: np.ndarray | None = None) -> int:
        self._memory = None
        cupy().get_default_memory_pool().free_all_blocks()
        self._memory = self._allocate(nbytes, self._bits if start is None else start, repeated=start is None)
        return int(self._memory.ptr)

    def _allocate(self, nbytes: int, start: np.ndarray, *, repeated: bool = False) -> Any:
        """Device memory that starts with an array, or is filled with copies of the array."""
        cuda = cupy().cuda
        memory, runtime = cuda.alloc(nbytes), cuda.runtime
        filled = min(nbytes, start.nbytes)
        start = np.ascontiguousarray(start)
        runtime.memcpy(memory.ptr, start.ctypes.data, filled, runtime.memcpyHostToDevice)
        while repeated and filled < nbytes:
            more = min(filled, nbytes - filled)
            runtime.memcpy(memory.ptr + filled, memory.ptr, more, runtime.memcpyDeviceToDevice)
            filled += more
        runtime.deviceSynchronize()
        return memory

    def seconds(self, kernel: Kernel, launch: Launch) -> float:
        start = self._launcher(kernel, launch)
        start()  # what the driver loads on a first launch must not be loaded while a graph is captured
        self._stream.synchronize()
        self._stream.begin_capture()
        try:
            start()
        finally:
            graph = self._stream.end_capture()
        return self._median(lambda: graph.launch(self._stream))

    def stream_seconds(self, kernel: Kernel, launch: Launch) -> float:
        return self._median(self._launcher(kernel, launch))

    def _median(self, start: Callable[[], object]) -> float:
        """Median time of what is started on the stream, which is started once before."""
        start()
        return statistics.median(self._elapsed(start) for _ in range(ROUNDS))

    def _elapsed(self, start: Callable[[], object]) -> float:
        cuda = cupy().cuda
        begin, end = cuda.Event(), cuda.Event()
        begin.record(self._stream)
        start()
        end.record(self._stream)
        end.synchronize()
        return float(cuda.get_elapsed_time(begin, end)) * 1e-3

    def read(self, kernel: Kernel, launch: Launch, words: int) -> list[int]:
        found = np.zeros(words, np.uint64)
        runtime, address = cupy().cuda.runtime, launch.other or self._scratch.ptr
        self._launcher(kernel, launch)()
        self._stream.synchronize()
        runtime.memcpy(found.ctypes.data, address, found.nbytes, runtime.memcpyDeviceToHost)
        return [int(word) for word in found]

    def clusters(self, kernel: Kernel) -> int:
        function = self._function(kernel)
        return driver.max_active_clusters(function, kernel.threads, kernel.cluster, kernel.dynamic_shared_bytes)

    def tensor_map(self, buffer: int, rows: int, row_bytes: int, pitch: int, box_rows: int) -> int:
        dtype = dtype_of("bfloat16")
        columns = row_bytes // dtype.bytes
        shape = tensor_maps.TensorMapShape(dtype, (columns, rows), (pitch,), (columns, box_rows))
        encoded = np.frombuffer(tensor_maps.encode(shape, buffer), np.uint8)
        self._map = self._allocate(encoded.nbytes, encoded)
        return int(self._map.ptr)

    def fused_seconds(
        self,
        function: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]],
        dtype: str,
        target: Target | None = None,
    ) -> float:
        self._memory = None
        fused = mf.fuse(function).with_options(target=target or self.target, dynamic_products=False)
        with on_device(self.device):
            sets = [[self._array(shape, dtype) for shape in shapes] for _ in range(2)]
            warm = time.monotonic() + WARM_SECONDS
            while (taken := tuning.measure(fused, sets)) and time.monotonic() < warm:
                pass
        del sets
        cupy().get_default_memory_pool().free_all_blocks()
        return taken * 1e-6

    def _array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of random numbers."""
        kind = np.dtype(dtype)
        numbers = self._random.standard_normal(_BLOCK_BYTES // kind.itemsize, np.float32).astype(kind)
        nbytes = int(np.prod(shape)) * kind.itemsize
        return cupy().ndarray(shape, kind, self._allocate(nbytes, numbers, repeated=True))

    def _function(self, kernel: Kernel) -> int:
        if kernel not in self._loaded:
            binary = kernel.binary(self.target)
            self._loaded[kernel], owner = load_function(binary, self.device, kernel.dynamic_shared_bytes)
            self._kept.append(owner)
        return self._loaded[kernel]

    def _launcher(self, kernel: Kernel, launch: Launch) -> Callable[[], None]:
        """A function that launches a kernel on the stream, `launch.count` times."""
        function, stream = self._function(kernel), int(self._stream.ptr)
        pointers = (ctypes.c_uint64(launch.buffer), ctypes.c_uint64(launch.other or self._scratch.ptr))
        numbers = (ctypes.c_uint32(launch.iterations), ctypes.c_uint32(launch.argument))
        parameters = (*pointers, *numbers)
        table = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(parameter) for parameter in parameters))
        if launch.is_dependent:
            start = driver.dependent_launcher(
                function,
                launch.blocks,
                kernel.threads,
                kernel.dynamic_shared_bytes,
                ctypes.addressof(table),
                cooperative=False,
                failure=lambda status: RuntimeLaunchError(f"cuLaunchKernelEx fails (CUresult {status})"),
            )
        else:
            start = _plain_launcher(function, launch.blocks, kernel, table)

        def launch_all(_keep_alive: Arguments = (parameters, table)) -> None:
            for _ in range(launch.count):
                start(stream)

        return launch_all


def _plain_launcher(function: int, blocks: int, kernel: Kernel, table: object) -> Callable[[int], None]:
    """A function that launches a kernel on a stream with the parameters of a table of their addresses."""
    start = driver.function("cuLaunchKernel")
    handle, grid = ctypes.c_void_p(function), (blocks, 1, 1, kernel.threads, 1, 1, kernel.dynamic_shared_bytes)

    def launch(stream: int) -> None:
        status = start(handle, *grid, ctypes.c_void_p(stream), table, None)
        if status:
            raise RuntimeLaunchError(f"cuLaunchKernel fails (CUresult {status})")

    return launch

"""A CUDA driver that only notes what it is given, and arrays that are only pointers."""

from __future__ import annotations

import ctypes
import math
import struct
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from threading import Thread, current_thread
from types import SimpleNamespace

import numpy as np
import pytest

from mlirfuse.compiler.kernel_info import KernelInfo, kernel_infos
from mlirfuse.compiler.read_host import host_program
from mlirfuse.runtime import workspace
from mlirfuse.runtime.device import cuda, module
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.runtime.dispatch import Dispatcher
from tests.support.harnesses.lowering_harness import SCALE, lower

_pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda pointer: pointer)
"""The number of what `ctypes` passes to a function as a pointer."""


class Pointer:
    """CuPy's `MemoryPointer`."""

    def __init__(self, ptr, device_id):
        self.ptr, self.device_id = ptr, device_id

    def __add__(self, nbytes):
        return Pointer(self.ptr + nbytes, self.device_id)


class ndarray:  # noqa: N801  CuPy's name
    """Has what is read of a `cupy.ndarray`."""

    __module__ = "cupy"

    def __init__(self, shape, pointer, dtype="float32", strides=None, device=0):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.strides = np.empty(self.shape, self.dtype).strides if strides is None else strides
        self.data = Pointer(pointer, device)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self._c_contiguous = self.strides == np.empty(shape, self.dtype).strides

    def __len__(self):
        return self.shape[0]

    def reshape(self, shape):
        return ndarray(shape, self.data.ptr, self.dtype)

    def transpose(self, axes):
        strides = tuple(self.strides[a] for a in axes)
        return ndarray([self.shape[a] for a in axes], self.data.ptr, self.dtype, strides)


class DriverError(Exception):
    """CuPy's `CUDADriverError`."""


class Device:
    """CuPy's, of a device that is the current one: it does nothing."""

    compute_capability = "90"

    def __init__(self, number): ...
    def __enter__(self): ...
    def __exit__(self, *error): ...


class Driver:
    """Notes launches: (function, grid, block, shared bytes, stream, parameters). Threads need a context."""

    CUDADriverError = DriverError

    def __init__(self):
        self.threads: set[Thread] = set()
        self.launches: list[tuple] = []
        self.codes: dict[int, str] = {}
        self.errors: list[str] = []
        self.whole = 0
        self.dependent = 0
        self.fitting = 3
        self.unloaded: list[int] = []
        self._functions = count(1)

    def load(self, info: KernelInfo, device: int = 0) -> LoadedKernel:
        """A kernel that can be launched."""
        function = next(self._functions)
        self.codes[function] = "".join(parameter.code for parameter in info.parameters)
        return LoadedKernel(info, function, device, None)

    def module(self) -> Module:
        """CuPy's constructor of a module."""
        return Module(self, next(self._functions))

    def launchCooperativeKernel(self, *arguments):  # noqa: N802
        self.whole += 1
        self.launchKernel(*arguments, 0)

    def launchKernelEx(self, config, function, table, extra):  # noqa: N802
        """Of the library itself, whose functions return a status."""
        config = config._obj
        flags = (ctypes.c_int * (config.attribute_count * 18)).from_address(config.attributes or 0)
        attributes = {flags[i]: flags[i + 2] for i in range(0, len(flags), 18)}
        assert attributes.pop(6) == 1
        self.dependent += 1
        self.whole += attributes.pop(2, 0)
        assert (attributes, extra) == ({}, None)
        stream, function, table = config.stream or 0, _pointer(function), _pointer(table)
        try:
            self.launchKernel(function, *config.grid, *config.block, config.shared_bytes, stream, table, 0)
        except DriverError:
            return 1
        return 0

    def require_context(self):
        if current_thread() not in self.threads:
            raise DriverError("CUDA_ERROR_INVALID_CONTEXT: invalid device context")

    def occupancyMaxActiveBlocksPerMultiprocessor(self, function, threads, shared):  # noqa: N802
        self.require_context()
        return self.fitting

    def launchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, table, extra):  # noqa: N802
        self.require_context()
        if self.errors:
            raise DriverError(self.errors.pop(0))
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, 0)
        if function not in self.codes:
            raise DriverError("CUDA_ERROR_INVALID_HANDLE: invalid resource handle")
        codes = self.codes[function]
        addresses = (ctypes.c_uint64 * len(codes)).from_address(table)
        words = [ctypes.string_at(address, 8) for address in addresses]
        values = [struct.unpack("=" + code, word)[0] for code, word in zip(codes, words, strict=True)]
        self.launches.append((function, gx, bx, shared, stream, values))


class Module:
    """A module with one function, which is unloaded with the last reference to it."""

    def __init__(self, driver: Driver, function: int):
        self._unloaded, self._function = driver.unloaded, function

    def load(self, code: bytes): ...

    def get_function(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(ptr=self._function)

    def __del__(self):
        self._unloaded.append(self._function)


class Runtime:
    """Notes what is allocated and zeroed; `memory` is what is read back. Stream 99 is being captured."""

    class CUDARuntimeError(Exception):
        """CuPy's."""

    def __init__(self, pointers, threads):
        self._pointers, self._threads = pointers, threads
        self.capture = 1
        self.graphs_over = 0
        self.freed: list[int] = []
        self.identities: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.zeroed: list[tuple[int, int, int]] = []

    def getDevice(self):  # noqa: N802
        return 0

    def setDevice(self, device):  # noqa: N802
        self._threads.add(current_thread())

    def graph_is_over(self):
        over, self.graphs_over = self.graphs_over > 0, max(self.graphs_over - 1, 0)
        return over

    def streamIsCapturing(self, stream):  # noqa: N802
        return stream == 99

    def malloc(self, nbytes):
        if nbytes > 1 << 30:
            raise self.CUDARuntimeError("out of memory")
        pointer = next(self._pointers)
        self.sizes[pointer] = nbytes
        return pointer

    def free(self, pointer):
        self.freed.append(pointer)

    def memsetAsync(self, pointer, value, nbytes, stream):  # noqa: N802
        assert value == 0
        self.zeroed.append((pointer, nbytes, stream))

    def memcpyAsync(self, target, source, nbytes, kind, stream):  # noqa: N802
        assert kind == 2
        words = (ctypes.c_uint32 * (nbytes // 4)).from_address(target)
        words[:] = [self.memory.get(source + 4 * i, 0) for i in range(nbytes // 4)]

    def streamCreateWithFlags(self, flags):  # noqa: N802
        assert flags == 1
        return 77

    def streamSynchronize(self, stream): ...  # noqa: N802
    def streamDestroy(self, stream): ...  # noqa: N802

    def deviceGetAttribute(self, attribute, device):  # noqa: N802
        return {16: 132}[attribute]


def install(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Puts a noting driver and an allocator that counts addresses up from 1 << 30 in CuPy's place."""
    driver, pointers = Driver(), iter(range(1 << 30, 1 << 40, 1 << 20))
    runtime = Runtime(pointers, driver.threads)
    fake = SimpleNamespace(
        empty=lambda shape, dtype: ndarray(shape, next(pointers), dtype),
        ndarray=lambda shape, dtype, data=None, strides=None: ndarray(
            shape, next(pointers) if data is None else data.ptr, dtype, strides
        ),
        dtype=np.dtype,
        cuda=SimpleNamespace(
            driver=driver,
            runtime=runtime,
            Device=Device,
            function=SimpleNamespace(Module=driver.module),
            get_current_stream=lambda device: SimpleNamespace(ptr=5 + device),
        ),
    )
    monkeypatch.setattr(cuda, "cupy", lambda: fake)
    monkeypatch.setattr(cuda, "_THREAD", cuda._Thread())
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    monkeypatch.setattr(workspace, "cupy", lambda: fake)
    monkeypatch.setattr(module, "cupy", lambda: fake)
    monkeypatch.setattr(module, "_MODULES", {})
    monkeypatch.setattr(workspace, "_ARENAS", {})
    monkeypatch.setattr(workspace, "_CAPTURES", {})
    monkeypatch.setattr(workspace.driver, "capture", lambda stream: workspace.driver.Capture(runtime.capture, 0))
    monkeypatch.setattr(workspace.driver, "GraphEnd", lambda graph: SimpleNamespace(is_over=runtime.graph_is_over))
    monkeypatch.setattr(workspace.driver, "stream_id", lambda stream: runtime.identities.get(stream, stream))
    monkeypatch.setattr(workspace.driver, "relaxed_capture", nullcontext)
    monkeypatch.setattr(workspace.driver, "function", {"cuLaunchKernelEx": driver.launchKernelEx}.__getitem__)
    driver.runtime = runtime
    return driver


def dispatcher(driver: Driver, text: str = SCALE, device: int = 0, structure=lambda infos: "tuple") -> Dispatcher:
    module = lower(text)
    program = host_program(module.operation)
    kernels = {name: driver.load(info, device) for name, info in kernel_infos(module.operation).items()}
    prepared = []

    def prepare(infos, copies=()):
        prepared.append(infos)
        return replace(program, structure=structure(infos)), kernels

    made = Dispatcher(prepare, [argument.name for argument in program.arguments])
    made.prepared = prepared  # type: ignore[attr-defined]
    return made


def x_and_y(rows=6, gap=1 << 20):
    return ndarray((rows, 512), 1 << 24), ndarray((rows, 512), (1 << 24) + gap)

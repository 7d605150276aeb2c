"""How a device is driven, on a CuPy whose memory is the host's: buffers, launches, graphs and timings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirfuse.runtime.device import driver
from mlirfuse.target import target_of
from mlirfuse.tools.calibration import cuda_gpu
from mlirfuse.tools.calibration.arithmetic import CLOCK_KERNEL
from mlirfuse.tools.calibration.benchmark import Launch
from mlirfuse.tools.calibration.cuda_gpu import CudaGpu
from mlirfuse.tools.calibration.launches import DEPENDENT_KERNEL, EMPTY_KERNEL, cluster_kernel

MILLISECONDS = [9.0, 3.0, 1.0, 2.0, 5.0]


class Memory:
    """Host memory in place of the device's."""

    def __init__(self, nbytes: int):
        self._bytes = np.full(nbytes, 0xCC, np.uint8)
        self.ptr = self._bytes.ctypes.data


class Stream:
    """A stream that notes what is done."""

    ptr = 0x57

    def __init__(self, *, non_blocking: bool):
        assert non_blocking
        self.done: list[str] = []

    def begin_capture(self) -> None:
        self.done.append("begin")

    def end_capture(self) -> Stream:
        self.done.append("end")
        return self

    def launch(self, stream: Stream) -> None:
        stream.done.append("replay")

    def synchronize(self) -> None: ...


class Event:
    """An event that takes no time."""

    def record(self, stream: Stream) -> None: ...

    def synchronize(self) -> None: ...


class Runtime:
    """`cupy.cuda.runtime` of one device."""

    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3  # noqa: N815 (CuPy's names)

    def __init__(self) -> None:
        self.set: list[int] = []

    def getDeviceCount(self) -> int:  # noqa: N802
        return 1

    def setDevice(self, device: int) -> None:  # noqa: N802
        self.set.append(device)

    def deviceGetAttribute(self, attribute: int, device: int) -> int:  # noqa: N802
        return {38: 50 << 20}[attribute]

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        return 100 << 30, 140 << 30

    def memcpy(self, to: int, source: int, nbytes: int, kind: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def deviceSynchronize(self) -> None: ...  # noqa: N802


class Cupy:
    """What `CudaGpu` takes of CuPy."""

    def __init__(self) -> None:
        times = iter(MILLISECONDS * 100)
        self.runtime = Runtime()
        self.cuda: Any = self
        self.alloc, self.Stream, self.Event = Memory, Stream, Event
        self.get_elapsed_time = lambda begin, end: next(times)

    def get_default_memory_pool(self) -> Cupy:
        return self

    def free_all_blocks(self) -> None: ...


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What the driver is asked to launch: grid, threads, shared memory and the four parameters."""
    found: list[tuple[int, ...]] = []
    cupy = Cupy()

    def read(table: Any) -> tuple[int, ...]:
        kinds = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
        pointers = (ctypes.c_void_p * 4).from_address(table) if isinstance(table, int) else table
        return tuple(kind.from_address(pointer).value for kind, pointer in zip(kinds, pointers, strict=True))

    def launch(function: ctypes.c_void_p, *arguments: Any) -> int:
        blocks, one, same, threads, _, _, shared, stream, table, extra = arguments
        assert (function.value, one, same, stream.value, extra) == (0xF, 1, 1, Stream.ptr, None)
        found.append((blocks, threads, shared, *read(table)))
        return 0

    def dependent(function: int, blocks: int, threads: int, shared: int, table: int, **_: Any) -> Callable[[int], None]:
        return lambda stream: found.append((blocks, threads, shared, *read(table)))

    monkeypatch.setattr(cuda_gpu, "cupy", lambda: cupy)
    monkeypatch.setattr(cuda_gpu, "require_context", lambda: None)
    monkeypatch.setattr(cuda_gpu, "device_target", lambda _: target_of("sm_90a"))
    monkeypatch.setattr(cuda_gpu, "load_function", lambda binary, device, shared: (0xF, binary))
    monkeypatch.setattr(driver, "function", {"cuLaunchKernel": launch}.__getitem__)
    monkeypatch.setattr(driver, "dependent_launcher", dependent)
    monkeypatch.setattr(driver, "max_active_clusters", lambda *arguments: sum(arguments))
    return found


@pytest.mark.usefixtures("launched")
def test_a_buffer_has_what_it_is_given() -> None:
    gpu = CudaGpu()
    assert (gpu.sms, gpu.l2_bytes, gpu.memory_bytes) == (132, 50 << 20, 100 << 30)
    start = np.arange(100, dtype=np.uint64)
    address = gpu.buffer(1024, start)
    assert np.array_equal((ctypes.c_uint64 * 100).from_address(address), start)


@pytest.mark.usefixtures("launched")
def test_a_buffer_is_filled_with_random_bytes_to_its_end() -> None:
    gpu, nbytes = CudaGpu(), 9 << 20
    found = np.frombuffer((ctypes.c_uint8 * nbytes).from_address(gpu.buffer(nbytes)), np.uint8)
    for part in np.split(found, 9):
        assert abs(float(part.mean()) - 127.5) < 1


def test_launches_get_their_arguments(launched: list[tuple[int, ...]]) -> None:
    gpu = CudaGpu()
    seconds = gpu.seconds(EMPTY_KERNEL, Launch(7, 5, buffer=1 << 40, other=1 << 41, argument=3, count=2))
    assert launched == [(7, 256, 0, 1 << 40, 1 << 41, 5, 3)] * 4, "two before the capture, and two in it"
    assert gpu._stream.done == ["begin", "end", *["replay"] * 6]
    assert seconds == sorted(MILLISECONDS)[2] * 1e-3


def test_dependent_launches_get_their_arguments(launched: list[tuple[int, ...]]) -> None:
    gpu = CudaGpu()
    gpu.seconds(DEPENDENT_KERNEL, Launch(4, 9, is_dependent=True))
    assert launched == [(4, 256, 0, 0, gpu._scratch.ptr, 9, 0)] * 2


def test_launches_without_a_graph(launched: list[tuple[int, ...]]) -> None:
    gpu = CudaGpu()
    gpu.stream_seconds(EMPTY_KERNEL, Launch(1, count=3))
    assert len(launched) == 3 * (1 + cuda_gpu.ROUNDS)
    assert not gpu._stream.done


@pytest.mark.usefixtures("launched")
def test_what_a_kernel_writes_is_read() -> None:
    gpu = CudaGpu()
    assert gpu.read(CLOCK_KERNEL, Launch(1), 2) == [0, 0]
    assert gpu.clusters(cluster_kernel(4, dynamic_shared_bytes=1024)) == 0xF + 256 + 4 + 1024


@pytest.mark.usefixtures("launched")
def test_a_tensor_map_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        cuda_gpu.tensor_maps, "encode", lambda shape, pointer: asked.append((shape, pointer)) or bytes(range(128))
    )
    address = CudaGpu().tensor_map(1 << 30, 1024, 128, 160, 64)
    assert asked[0][1] == 1 << 30
    assert (asked[0][0].extents, asked[0][0].strides, asked[0][0].box) == ((64, 1024), (160,), (64, 64))
    assert address

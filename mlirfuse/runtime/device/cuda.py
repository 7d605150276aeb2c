"""The CUDA libraries: CuPy always, PyTorch where the caller has imported it.

Both are imported on first use, so that importing mlirfuse needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from threading import local
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mlirfuse.errors import ArgumentError, RuntimeLaunchError
from mlirfuse.support.dtypes import dtype_of
from mlirfuse.support.installation import driver_cuda_version, how_to_launch
from mlirfuse.target import TARGETS, Target, target_of

SM_COUNT = 16  # cudaDevAttrMultiProcessorCount

LIMITS = {
    "threads_per_sm": 39,
    "shared_per_sm": 81,
    "registers_per_sm": 82,
    "shared_per_block": 97,
    "blocks_per_sm": 106,
}
"""The attributes of a device (cudaDeviceAttr) that say what a field of a target says."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_OLDEST = f"the oldest is {min(target.capability for target in TARGETS.values()) / 10}"
_NO_GPU = "use target='interpret' without a GPU"


@cache
def cupy() -> ModuleType:
    """CuPy; raises `RuntimeLaunchError` where it is not installed or finds no GPU."""
    try:
        import cupy
    except ImportError as error:
        hint = how_to_launch(driver_cuda_version())
        raise RuntimeLaunchError("launching a kernel needs CuPy, which is not installed", hint=hint) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeLaunchError(f"CUDA cannot be initialised: {error}", hint=_NO_GPU) from error
    if count == 0:
        raise RuntimeLaunchError("there is no CUDA device", hint=_NO_GPU)
    return cupy


def torch() -> ModuleType | None:
    """PyTorch if the process has imported it; otherwise no argument can be a torch tensor."""
    return sys.modules.get("torch")


class _Thread(local):
    """State of each host thread.

    Attributes:
        has_context: whether a CUDA context has been made current in it.
    """

    has_context = False


_THREAD = _Thread()


def thread() -> _Thread:
    """The state of host threads; each sees its own."""
    return _THREAD


def require_context() -> None:
    """Makes the context of the current device current in this thread, once a thread.

    A new thread has no context until the CUDA runtime sets a device, and functions of the driver fail without one. CuPy
    does not set a device that is the current one already, as device 0 is.
    """
    if not _THREAD.has_context:
        runtime = cupy().cuda.runtime
        runtime.setDevice(runtime.getDevice())
        _THREAD.has_context = True


@contextmanager
def on_device(device: int) -> Iterator[None]:
    """Runs a block with a device and its context current."""
    require_context()
    with cupy().cuda.Device(device):
        yield


@contextmanager
def on_stream(pointer: int) -> Iterator[None]:
    """Runs a block with a stream of the current device as CuPy's current one, on which it allocates and copies."""
    with cupy().cuda.Stream.from_external(_Stream(pointer)):
        yield


@dataclass(frozen=True)
class _Stream:
    """A stream, given by its `cudaStream_t`, as `from_external` takes it: by CUDA Python's stream protocol."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, and the pointer."""
        return 0, self.pointer


def bits(shape: tuple[int, ...], element_bytes: int) -> Any:
    """An uninitialised C-contiguous array of CuPy on the current device, of unsigned integers of so many bytes."""
    return cupy().empty(shape, f"u{element_bytes}")


def copy_bits(source: Any, pointer: int, strides: tuple[int, ...], span: tuple[int, int]) -> None:
    """Copies an array of CuPy on its current stream.

    Args:
        source: the array.
        pointer: address of the destination's first element.
        strides: the destination's, in elements; they may be negative.
        span: bytes from the pointer to the destination's first byte, and to the byte behind its last.
    """
    memory = cupy().cuda.UnownedMemory(pointer + span[0], span[1] - span[0], None)
    start = cupy().cuda.MemoryPointer(memory, -span[0])
    target = cupy().ndarray(source.shape, source.dtype, start, tuple(s * source.itemsize for s in strides))
    target[...] = source


@cache
def device_count() -> int:
    """Number of CUDA devices."""
    return int(cupy().cuda.runtime.getDeviceCount())


def chip(device: int) -> str:
    """The target that code for a device is compiled for; raises `RuntimeLaunchError` for a device too old."""

    def limit(name: str) -> int:
        return int(cupy().cuda.runtime.deviceGetAttribute(LIMITS[name], device))

    return chip_for(capability(device), limit)


def capability(device: int) -> int:
    """A device's compute capability times ten."""
    return int(cupy().cuda.Device(device).compute_capability)


def device_target(device: int) -> Target:
    """The target that code for a device is compiled for, with the device's SMs."""
    sms = cupy().cuda.runtime.deviceGetAttribute(SM_COUNT, device)
    return target_of(chip(device)).with_sms(sms)


@cache
def device_name(device: int) -> str:
    """The name that CUDA reports for a device, such as `NVIDIA H200`."""
    name = cupy().cuda.runtime.getDeviceProperties(device)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def chip_for(capability: int, limit: Callable[[str], int]) -> str:
    """The target for a compute capability times ten: its own, with architecture-specific instructions where known.

    For an unknown device it is the newest earlier target whose limits the device meets, and the driver compiles the
    PTX. Code of an architecture-specific target (`sm_90a`) runs on that architecture alone.

    Args:
        capability: the device's.
        limit: what the device has of a field of `LIMITS`; asked where its capability is not known.

    Raises:
        RuntimeLaunchError: every target is newer, or asks for more.
    """
    for name in (f"sm_{capability}a", f"sm_{capability}"):
        if name in TARGETS:
            return name
    older = [t for t in TARGETS.values() if t.capability < capability and not t.is_specific]
    fitting = [t for t in older if all(getattr(t, name) <= limit(name) for name in LIMITS)]
    if not fitting:
        raise RuntimeLaunchError(f"compute capability {capability / 10} is not supported", hint=_OLDEST)
    return max(fitting, key=lambda target: target.capability).chip


def guarded(function: Callable[_P, _R], device: int) -> Callable[_P, _R]:
    """The function wrapped to run with that device and its context current."""
    if device_count() == 1:
        return function
    device_type = cupy().cuda.Device

    def on_device(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with device_type(device):
            return function(*args, **kwargs)

    return on_device


def current_stream(framework: str, device: int) -> Callable[[], int]:
    """A function that returns the framework's current stream on a device, as a pointer."""
    if framework == "torch":
        pytorch = torch()
        assert pytorch is not None
        raw = getattr(pytorch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public function's time
        if raw is not None:
            return partial(raw, device)
        return lambda: pytorch.cuda.current_stream(device).cuda_stream
    get = cupy().cuda.get_current_stream
    return lambda: get(device).ptr  # the stream of the arrays' device, which need not be the current one


def stream_pointer(stream: object) -> int:
    """The pointer of a CuPy stream, a torch stream or an int; raises `ArgumentError` for anything else."""
    if isinstance(stream, int) and not isinstance(stream, bool) and 0 <= stream < 1 << 64:
        return stream
    for attribute in ("ptr", "cuda_stream"):
        pointer = getattr(stream, attribute, None)
        if isinstance(pointer, int):
            return pointer
    raise ArgumentError(
        f"{stream!r} is no stream",
        where="stream",
        hint="give a cupy.cuda.Stream, a torch.cuda.Stream or a pointer",
    )


def allocator(framework: str, shape: tuple[int, ...], dtype: str, device: int) -> Callable[[], tuple[object, int]]:
    """A function that allocates an uninitialised C-contiguous array and returns it with its pointer.

    Args:
        framework: `torch` or `cupy`.
        shape: its shape.
        dtype: its dtype's array-API name.
        device: the CUDA device.

    Raises:
        ArgumentError: the framework has no such dtype.
    """
    if framework == "torch":
        pytorch = torch()
        assert pytorch is not None
        kind, place, torch_empty = getattr(pytorch, dtype), pytorch.device("cuda", device), pytorch.empty

        def allocate_torch() -> tuple[object, int]:
            array = torch_empty(shape, dtype=kind, device=place)
            return array, array.data_ptr()

        return allocate_torch  # the device is named, so it need not be current
    if dtype_of(dtype).is_float8:
        raise ArgumentError(f"CuPy has no arrays of {dtype}", hint="give PyTorch tensors, or cast the result")
    cupy_empty, cupy_type = cupy().empty, dtype_of(dtype).numpy

    def allocate_cupy() -> tuple[object, int]:
        array = cupy_empty(shape, cupy_type)
        return array, array.data.ptr

    return guarded(allocate_cupy, device)


def allocation(
    framework: str, shape: tuple[int, ...], dtype: str, device: int, number: int
) -> tuple[str, str, dict[str, object]]:
    """As `allocator`, for code that is generated, with the device current.

    Args:
        framework: `torch` or `cupy`.
        shape: the array's.
        dtype: its dtype's array-API name.
        device: the CUDA device.
        number: the array has the name `r` and this number.

    Returns:
        Statements that make the array, the expression of its pointer, and the constants in both.
    """
    if framework == "torch":
        pytorch = torch()
        assert pytorch is not None
        kind = getattr(pytorch, dtype)
        known = {f"shape{number}": shape, f"type{number}": kind, "pointer_of": pytorch.Tensor.data_ptr}
        empty_strided = _empty_strided(pytorch, device)
        if empty_strided is not None:
            strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape))) if 0 not in shape else (1,) * len(shape)
            known |= {"empty_strided": empty_strided, f"strides{number}": strides}
            made = f"r{number} = empty_strided(shape{number}, strides{number}, type{number})"
            return made, f"pointer_of(r{number})", known
        known |= {"empty": pytorch.empty, "place": pytorch.device("cuda", device)}
        made = f"r{number} = empty(shape{number}, dtype=type{number}, device=place)"
        return made, f"pointer_of(r{number})", known
    known = {f"shape{number}": shape, f"type{number}": dtype_of(dtype).numpy, "ndarray": cupy().ndarray}
    constructor = _constructor()
    if constructor is None:
        return f"r{number} = ndarray(shape{number}, type{number})", f"r{number}.data.ptr", known
    known["new"], known["init"] = constructor
    return f"r{number} = new(ndarray); init(r{number}, shape{number}, type{number})", f"r{number}.data.ptr", known


@cache
def _constructor() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """The two halves of the construction of CuPy's arrays, where this version has them.

    `ndarray.__new__` calls them by keywords and in several steps, which takes as long again. They are not public.
    """
    kind = cupy().ndarray
    plain = kind((2, 3), "float16")
    try:
        new, init = kind.__mro__[1].__new__, kind.__mro__[1]._init
        made = new(kind)
        init(made, (2, 3), np.dtype("float16"))
    except (AttributeError, TypeError):
        return None

    def facts(array: Any) -> tuple[object, ...]:
        return type(array), array.shape, array.strides, array.dtype, array.flags.c_contiguous, array.base, array.device

    return (new, init) if facts(made) == facts(plain) and made.data.ptr else None


@cache
def _empty_strided(pytorch: ModuleType, device: int) -> Callable[..., Any] | None:
    """PyTorch's allocation on the current device without its dispatcher, where this version has it.

    `torch.compile` makes results by this function, which is not public. It takes a shape, strides, and a dtype.
    """
    try:
        function: Callable[..., Any] = pytorch._C._dynamo.guards._empty_strided_cuda
        with pytorch.cuda.device(device):
            made = function((2, 3), (3, 1), pytorch.float16)
        alike = (tuple(made.shape), made.stride(), made.dtype, made.get_device())
    except (AttributeError, TypeError, RuntimeError):
        return None
    return function if alike == ((2, 3), (3, 1), pytorch.float16, device) else None

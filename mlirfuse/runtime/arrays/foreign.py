"""Arrays of any library through the two interchange protocols: the slow path.

`__cuda_array_interface__` (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html) and DLPack
(https://dmlc.github.io/dlpack/latest/c_api.html).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mlirfuse.errors import ArgumentError

_CUDA, _CUDA_MANAGED = 2, 13  # DLDeviceType
_KINDS = {0: "int", 2: "float", 4: "bfloat", 6: "bool"}  # DLDataTypeCode
_NAMES = {10: "float8_e4m3fn", 12: "float8_e5m2"}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def read_interface(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], np.dtype, int]:
    """(pointer, shape, strides in bytes, dtype, device) of an object with `__cuda_array_interface__`.

    Where the object names the stream that writes it, this waits for that stream.

    Raises:
        ArgumentError: it has a mask, or no data.
    """
    interface = array.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError(f"{type(array).__name__} has a mask", hint="mlirfuse takes plain arrays")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    pointer = int(interface["data"][0] or 0)
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous_strides(shape, dtype.itemsize)
    return pointer, shape, tuple(strides), dtype, _device(pointer, interface.get("stream"))


def read_dlpack(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], str, int, object]:
    """(pointer, shape, strides in elements, dtype name, device, owner) of an object with `__dlpack__`.

    The producer makes its work visible to the legacy default stream. `owner` keeps the export alive.

    Raises:
        ArgumentError: the memory is not a GPU's, or the dtype has no name here.
    """
    device_type, device = array.__dlpack_device__()
    if int(device_type) not in (_CUDA, _CUDA_MANAGED):
        raise ArgumentError(
            f"{type(array).__name__} is not on a CUDA device", hint="give arrays on the GPU, or use target='interpret'"
        )
    capsule = array.__dlpack__(stream=1)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    if tensor.lanes != 1 or (tensor.code not in _KINDS and tensor.code not in _NAMES):
        raise ArgumentError(
            f"DLPack type ({tensor.code}, {tensor.bits}, {tensor.lanes}) of code, bits and lanes is not supported",
            hint="convert to a dtype of mlirfuse: floats, integers, bool",
        )
    kind = _KINDS.get(tensor.code)
    name = _NAMES[tensor.code] if kind is None else "bool" if kind == "bool" else f"{kind}{tensor.bits}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else contiguous_strides(shape, 1)
    return (tensor.data or 0) + tensor.byte_offset, shape, strides, name, int(device), capsule


def contiguous_strides(shape: tuple[int, ...], unit: int) -> tuple[int, ...]:
    """C-order strides of a shape, in multiples of `unit`."""
    strides, step = [], unit
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _device(pointer: int, stream: int | None) -> int:
    """The device that memory belongs to, after waiting for the stream that writes it."""
    from mlirfuse.runtime.device.cuda import cupy

    runtime = cupy().cuda.runtime
    if stream is not None:
        runtime.streamSynchronize(stream)
    return int(runtime.pointerGetAttributes(pointer).device) if pointer else int(runtime.getDevice())

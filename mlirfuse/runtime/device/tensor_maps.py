"""Tensor maps: the 128-byte descriptors of arrays for the tensor memory accelerator, which the driver encodes.

A map holds the array's pointer, and is encoded again when the pointer changes. The last maps are cached by pointer; a
call with the pointers of the call before encodes nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import driver
from mlirfuse.schedule.model.machine import TENSOR_MAP_STRIDE
from mlirfuse.support.dtypes import DType

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64
KEPT = 256
"""Size of each parameter's cache of maps."""

# Of the CUDA driver API: CUtensorMapDataType, -Swizzle, -L2promotion, -FloatOOBfill, -Interleave.
_DATA_TYPES = {"float16": 6, "float32": 7, "bfloat16": 9}
_DATA_TYPES |= {"float8_e4m3fn": 0, "float8_e5m2": 0, "int8": 0, "uint8": 0, "bool": 0}  # unsigned bytes
_DATA_TYPES |= {"int32": 3}
_TF32 = 11
_NO_INTERLEAVE, _SWIZZLE_128, _FILL_ZERO = 0, 3, 0

_PROMOTE_128 = 2
"""A miss in the L2 fetches 128 bytes, the size of a box's row. With 256 bytes, the second half belongs to a later copy,
and is evicted before it or evicts shared lines: slower for products with a long reduction."""


@dataclass(frozen=True)
class TensorMapShape:
    """A tensor map without its pointer; dimensions from the innermost on.

    Attributes:
        dtype: of the elements.
        extents: of the array.
        strides: bytes from one element to the next along each dimension but the innermost, whose elements are
            neighbours.
        box: elements of one copy along each dimension.
        tf32: whether copies round float32 to tf32.
        im2col: of windows the lower corners, upper corners and steps, one after the other, each from the innermost
            spatial dimension out; a box is then a number of channels and one of pixels. Empty for copies of boxes.
    """

    dtype: DType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    tf32: bool = False
    im2col: tuple[int, ...] = ()

    @classmethod
    def of_view(
        cls,
        dtype: DType,
        shape: Sequence[int],
        strides: Sequence[int],
        dims: Sequence[int],
        box: Sequence[int],
        *,
        tf32: bool = False,
        im2col: Sequence[int] = (),
    ) -> TensorMapShape:
        """The map of an array with `strides` in elements, whose dimensions `dims` lists from the innermost out.

        The stride of a dimension of extent 1 is unused and may be illegal in a map, so it is replaced.
        """
        unused = -(-max(shape) * dtype.bytes // TENSOR_MAP_STRIDE) * TENSOR_MAP_STRIDE
        byte_strides = [strides[d] * dtype.bytes if shape[d] > 1 else unused for d in dims[1:]]
        return cls(dtype, tuple(shape[d] for d in dims), tuple(byte_strides), tuple(box), tf32, tuple(im2col))


class TensorMapParameter:
    """A tensor map in the parameters of a launch plan, encoded again when the pointer has changed.

    Args:
        shape: the map without its pointer.
        word: position of the pointer among the words of a call.
        address: where the map is written; aligned to `TENSOR_MAP_ALIGNMENT` bytes.
        distance: bytes from the pointer to the map's first element.
    """

    def __init__(self, shape: TensorMapShape, word: int, address: int, distance: int = 0):
        self._shape, self._word, self._address, self._distance = shape, word, address, distance
        self._current: int | None = None
        self._kept: dict[int, bytes] = {}

    def update(self, words: Sequence[int]) -> None:
        """Writes the map for a call's pointer; raises `RuntimeLaunchError` where the driver cannot encode it."""
        pointer = words[self._word] + self._distance
        if pointer == self._current:
            return
        encoded = self._kept.get(pointer)
        if encoded is None:
            if len(self._kept) == KEPT:
                del self._kept[next(iter(self._kept))]
            encoded = self._kept[pointer] = encode(self._shape, pointer)
        ctypes.memmove(self._address, encoded, TENSOR_MAP_BYTES)
        self._current = pointer


def encode(shape: TensorMapShape, pointer: int) -> bytes:
    """The tensor map of an array, by `cuTensorMapEncodeTiled`, or `cuTensorMapEncodeIm2col` for windows.

    Raises:
        RuntimeLaunchError: the driver refuses it, or is too old to know of tensor maps, or a dimension is so long that
            the signed 32-bit coordinates of copies do not reach its end.
    """
    if max(shape.extents) >= 1 << 31:
        raise RuntimeLaunchError(
            f"a dimension of {max(shape.extents)} elements is too long for copies by tensor maps",
            hint="divide the array into parts of fewer than 2**31 elements along each dimension",
        )
    if shape.dtype.name not in _DATA_TYPES:
        raise RuntimeLaunchError(f"tensor maps cannot have elements of {shape.dtype.name}")
    rank = len(shape.extents)
    buffer = aligned_buffer(TENSOR_MAP_BYTES)
    extents = (ctypes.c_uint64 * rank)(*shape.extents)
    strides = (ctypes.c_uint64 * (rank - 1))(*shape.strides)
    data_type = _TF32 if shape.tf32 else _DATA_TYPES[shape.dtype.name]
    array = (ctypes.c_void_p(buffer.address), data_type, rank, ctypes.c_void_p(pointer), extents, strides)
    how = (_NO_INTERLEAVE, _SWIZZLE_128, _PROMOTE_128, _FILL_ZERO)
    if shape.im2col:
        spatial = rank - 2
        lower, upper = ((ctypes.c_int * spatial)(*shape.im2col[i * spatial : (i + 1) * spatial]) for i in range(2))
        steps = (ctypes.c_uint32 * rank)(1, *shape.im2col[2 * spatial :], 1)
        status = driver.function("cuTensorMapEncodeIm2col")(*array, lower, upper, *shape.box, steps, *how)
    else:
        box, unit = (ctypes.c_uint32 * rank)(*shape.box), (ctypes.c_uint32 * rank)(*[1] * rank)
        status = driver.function("cuTensorMapEncodeTiled")(*array, box, unit, *how)
    if status:
        raise RuntimeLaunchError(
            f"the driver refuses a tensor map of extents {shape.extents}, strides {shape.strides} bytes and box "
            f"{shape.box} at {pointer:#x} (CUresult {status})"
        )
    return ctypes.string_at(buffer.address, TENSOR_MAP_BYTES)


@dataclass(frozen=True)
class AlignedBuffer:
    """Host memory at an address that is a multiple of `TENSOR_MAP_ALIGNMENT`.

    Attributes:
        address: of the first byte.
        owner: keeps it allocated.
    """

    address: int
    owner: object


def aligned_buffer(nbytes: int) -> AlignedBuffer:
    """Zeroed host memory, aligned for tensor maps."""
    owner = ctypes.create_string_buffer(nbytes + TENSOR_MAP_ALIGNMENT)
    start = ctypes.addressof(owner)
    return AlignedBuffer(-(-start // TENSOR_MAP_ALIGNMENT) * TENSOR_MAP_ALIGNMENT, owner)

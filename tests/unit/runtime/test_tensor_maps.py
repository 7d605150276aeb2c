"""Tensor maps: their shapes, and when they are encoded."""

from __future__ import annotations

import ctypes

import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import tensor_maps
from mlirfuse.runtime.device.tensor_maps import (
    TENSOR_MAP_BYTES,
    TensorMapParameter,
    TensorMapShape,
    aligned_buffer,
    encode,
)
from mlirfuse.support.dtypes import dtype_of

BF16 = dtype_of("bfloat16")


def test_dimensions_come_innermost_first_and_strides_in_bytes():
    shape = TensorMapShape.of_view(BF16, (3, 100, 64), (6400, 64, 1), (2, 1, 0), (64, 32, 1))
    assert shape.extents == (64, 100, 3)
    assert shape.strides == (128, 12800)
    assert shape.box == (64, 32, 1)


def test_a_stride_that_means_nothing_is_one_that_a_map_may_have():
    shape = TensorMapShape.of_view(BF16, (1, 33), (33, 1), (1, 0), (64, 8))
    (stride,) = shape.strides
    assert stride % 16 == 0
    assert stride >= 66


def test_a_column_major_matrix_has_its_first_dimension_innermost():
    shape = TensorMapShape.of_view(BF16, (128, 256), (1, 128), (0, 1), (64, 64))
    assert (shape.extents, shape.strides) == ((128, 256), (256,))


def test_maps_are_encoded_once_a_pointer(monkeypatch):
    encoded = []
    monkeypatch.setattr(
        tensor_maps, "encode", lambda shape, pointer: encoded.append(pointer) or bytes([pointer]) * TENSOR_MAP_BYTES
    )
    place = aligned_buffer(TENSOR_MAP_BYTES)
    parameter = TensorMapParameter(TensorMapShape(BF16, (64, 64), (128,), (64, 64)), 1, place.address)
    for pointer in (7, 7, 9, 7):
        parameter.update([0, pointer])
        assert ctypes.string_at(place.address, TENSOR_MAP_BYTES) == bytes([pointer]) * TENSOR_MAP_BYTES
    assert encoded == [7, 9]


def test_the_oldest_maps_are_forgotten(monkeypatch):
    encoded = []
    monkeypatch.setattr(
        tensor_maps, "encode", lambda shape, pointer: encoded.append(pointer) or b"\0" * TENSOR_MAP_BYTES
    )
    place = aligned_buffer(TENSOR_MAP_BYTES)
    parameter = TensorMapParameter(TensorMapShape(BF16, (64, 64), (128,), (64, 64)), 0, place.address)
    for pointer in [*range(tensor_maps.KEPT + 1), 0]:
        parameter.update([pointer])
    assert encoded.count(0) == 2
    assert len(encoded) == tensor_maps.KEPT + 2


def test_memory_for_maps_is_aligned():
    assert aligned_buffer(TENSOR_MAP_BYTES).address % 64 == 0


def test_coordinates_of_maps_have_32_bits_with_their_sign():
    shape = TensorMapShape.of_view(BF16, [1 << 31, 8], [8, 1], [1, 0], [8, 64])
    with pytest.raises(RuntimeLaunchError, match="2147483648 elements is too long for copies by tensor maps"):
        encode(shape, 0)


def test_there_are_no_maps_of_some_types():
    with pytest.raises(RuntimeLaunchError, match="tensor maps cannot have elements of float64"):
        encode(TensorMapShape(dtype_of("float64"), (64, 64), (64,), (64, 64)), 0)


@pytest.mark.parametrize(
    ("dtype", "tf32", "number"), [("float32", False, 7), ("float32", True, 11), ("float8_e5m2", False, 0)]
)
def test_data_types(monkeypatch, dtype, tf32, number):
    """Those of CUtensorMapDataType; float8 is copied as bytes."""
    calls = []
    monkeypatch.setattr(tensor_maps.driver, "function", lambda name: lambda *args: calls.append(args) or 0)
    encode(TensorMapShape(dtype_of(dtype), (64, 64), (256,), (32, 64), tf32), 1 << 24)
    assert calls[0][1] == number

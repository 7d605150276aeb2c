"""Tensor maps in launches: which parameter gets which map, and when it is made again."""

from __future__ import annotations

import ctypes

import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import tensor_maps
from mlirfuse.runtime.device.tensor_maps import TENSOR_MAP_BYTES, TensorMapShape
from tests.support.fakes.fake_driver import dispatcher, ndarray

COPY = """
#shared = #gpu.address_space<workgroup>
gpu.module @copy {
  gpu.func @copy(%x: memref<?x512xf32> {fuse.align = 16 : i64}, %y: memref<?x512xf32>)
      workgroup(%ring : memref<2x64x32xf32, #shared>, %full : memref<2xi64, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>,
                         fuse.grid = affine_map<()[s0] -> (s0 ceildiv 64)>, fuse.grid_operands = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    "fuse.async_load"(%x, %ring, %c0, %full, %c0, %c0) {dims = array<i64: 0, 1>}
        : (memref<?x512xf32>, memref<2x64x32xf32, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    "fuse.async_store"(%y, %ring, %c0, %c0, %c0) {dims = array<i64: 0, 1>}
        : (memref<?x512xf32>, memref<2x64x32xf32, #shared>, index, index, index) -> ()
    gpu.return
  }
}
func.func @f(%x: tensor<?x512xf32> {fuse.name = "x", fuse.align = 16 : i64}) -> tensor<?x512xf32> {
  %0 = call @f_0(%x) : (tensor<?x512xf32>) -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}
func.func private @f_0(tensor<?x512xf32>) -> tensor<?x512xf32>
    attributes {fuse.launch = @copy, fuse.result_extents = array<i64: 0, 0>}
"""


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TensorMapShape, int]]:
    """The maps that were encoded, in order; map number n is 128 bytes of n."""
    maps: list[tuple[TensorMapShape, int]] = []

    def encode(shape: TensorMapShape, pointer: int) -> bytes:
        maps.append((shape, pointer))
        return bytes([len(maps)]) * TENSOR_MAP_BYTES

    monkeypatch.setattr(tensor_maps, "encode", encode)
    return maps


def test_each_way_of_copying_an_argument_has_a_map(driver, encoded):
    run = dispatcher(driver, COPY)
    out = ndarray((100, 512), 1 << 26)
    run((ndarray((100, 512), 1 << 24),), out=out)
    assert [pointer for _, pointer in encoded] == [1 << 24, 1 << 26]
    shape = encoded[0][0]
    assert (shape.extents, shape.strides, shape.box) == ((512, 100), (2048,), (32, 64))


def test_copies_that_round_have_a_map_that_says_so(driver, encoded):
    load, copy = '"fuse.async_load"(%x, %ring, %c0, %full, %c0, %c0) {dims = array<i64: 0, 1>', COPY
    assert load in copy
    rounding = copy.replace(load, f"{load}, tf32")
    dispatcher(driver, rounding)((ndarray((100, 512), 1 << 24),), out=ndarray((100, 512), 1 << 26))
    assert [shape.tf32 for shape, _ in encoded] == [True, False]


def test_maps_follow_the_pointers(driver, encoded):
    run = dispatcher(driver, COPY)
    out = ndarray((100, 512), 1 << 26)
    for pointer in (1 << 24, 1 << 24, 1 << 25, 1 << 24):
        run((ndarray((100, 512), pointer),), out=out)
    assert [pointer for _, pointer in encoded] == [1 << 24, 1 << 26, 1 << 25]


def test_a_call_after_one_whose_map_failed(driver, encoded, monkeypatch):
    """Has its own pointers, though some of the other's were written since it was made last."""
    run, encode = dispatcher(driver, COPY), tensor_maps.encode
    x, out = ndarray((100, 512), 1 << 24), ndarray((100, 512), 1 << 26)
    run((x,), out=out)

    def refuse(shape, pointer):
        raise RuntimeLaunchError("no map")

    monkeypatch.setattr(tensor_maps, "encode", refuse)
    with pytest.raises(RuntimeLaunchError, match="no map"):
        run((ndarray((100, 512), 1 << 25),), out=out)
    monkeypatch.setattr(tensor_maps, "encode", encode)
    run((x,), out=out)
    assert driver.launches[0] == driver.launches[1]


def test_another_number_of_rows_has_maps_of_its_own(driver, encoded):
    run = dispatcher(driver, COPY)
    for rows in (100, 33):
        run((ndarray((rows, 512), 1 << 24),), out=ndarray((rows, 512), 1 << 26))
    assert [shape.extents[1] for shape, _ in encoded] == [100, 100, 33, 33]


def test_nothing_to_launch_needs_no_maps(driver, encoded):
    (result,) = dispatcher(driver, COPY)((ndarray((0, 512), 1 << 24),))
    assert result.shape == (0, 512)
    assert encoded == []


def test_the_launch_reads_the_map_itself(driver, encoded):
    """The parameter is not a pointer to the map but its bytes, at an address that is a multiple of 64."""
    read = []
    launch = driver.launchKernel

    def note(*arguments):
        table = ctypes.cast(arguments[9], ctypes.POINTER(ctypes.c_uint64))
        read.extend((table[n] % 64, ctypes.string_at(table[n], TENSOR_MAP_BYTES)[0]) for n in (4, 5))
        launch(*arguments)

    driver.launchKernel = note
    dispatcher(driver, COPY)((ndarray((100, 512), 1 << 24),), out=ndarray((100, 512), 1 << 26))
    assert read == [(0, 1), (0, 2)]

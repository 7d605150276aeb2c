"""Whole kernels at the gpu level: right numbers, fast enough."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mlirfuse import interpreter
from tests.support.kernels import SHARED, parse


def layer_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    h = x.astype(np.float64)
    return (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5) * w


def rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return (rng.normal(3, 1, (count, 1000))).astype(np.float16), rng.normal(1, 1, 1000).astype(np.float16)


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
@pytest.mark.parametrize("resident", [None, 1, 3])
def test_layer_norm_in_every_block_order(load, order, resident):
    x, w = rows(5)
    (y,) = interpreter.run(load("layer_norm"), "layer_norm", [x, w], order=order, seed=11, resident=resident)
    np.testing.assert_allclose(y.astype(np.float64), layer_norm(x, w), rtol=2e-3, atol=2e-3)


def test_layer_norm_without_rows(load):
    x, w = rows(0)
    (y,) = interpreter.run(load("layer_norm"), "layer_norm", [x, w])
    assert y.shape == (0, 1000)


def test_layer_norm_of_8_rows_takes_under_two_seconds(load):
    x, w = rows(8)
    module = load("layer_norm")
    start = time.perf_counter()
    interpreter.run(module, "layer_norm", [x, w])
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_cluster_sum(load, order):
    x = np.random.default_rng(0).random((3, 128), np.float32)
    y = np.zeros_like(x)
    interpreter.run_kernel(load("cluster_sum"), "cluster_sum_kernel", [x], [y], order=order, seed=5)
    np.testing.assert_allclose(y, x / x.sum(1, keepdims=True), rtol=1e-5)


def test_unchecked_run_gives_the_same_numbers(load):
    x, w = rows(2)
    module = load("layer_norm")
    (checked,) = interpreter.run(module, "layer_norm", [x, w])
    (unchecked,) = interpreter.run(module, "layer_norm", [x, w], checks=False)
    np.testing.assert_array_equal(checked, unchecked)


def test_ids(run_threads):
    out = np.zeros((4, 64, 10), np.int64)
    body = "%i = gpu.global_id x\n%l = gpu.lane_id\n%s = gpu.subgroup_id : index\n%d = gpu.block_dim x\n"
    body += "%g = gpu.grid_dim x\n%r = gpu.cluster_block_id x\n%n = gpu.cluster_dim x\n"
    body += "%m = gpu.cluster_dim_blocks x\n%w = gpu.subgroup_size : index\n%q = gpu.num_subgroups : index\n"
    for position, value in enumerate(("%i", "%l", "%s", "%d", "%g", "%r", "%n", "%m", "%w", "%q")):
        body += f"%v{position} = arith.index_cast {value} : index to i64\n"
        body += f"%at{position} = arith.constant {position} : index\n"
        body += f"memref.store %v{position}, %out0[%b, %t, %at{position}] : memref<4x64x10xi64>\n"
    run_threads(body, [], [out], threads=64, blocks=4, cluster=2)
    block, thread = np.mgrid[0:4, 0:64]
    by_thread = [block * 64 + thread, thread % 32, thread // 32]
    expected = [*by_thread, np.full_like(block, 64), np.full_like(block, 4), block % 2]
    expected += [np.full_like(block, extent) for extent in (2, 2, 32, 2)]
    np.testing.assert_array_equal(out, np.stack(expected, axis=-1))


def test_private_memory_is_a_threads_own(run_threads):
    out = np.zeros(32, np.int64)
    body = """
      %mine = memref.alloca() : memref<2xi64>
      %v = arith.index_cast %t : index to i64
      memref.store %v, %mine[%c1] : memref<2xi64>
      %r = memref.load %mine[%c1] : memref<2xi64>
      memref.store %r, %out0[%t] : memref<32xi64>"""
    run_threads(body, [], [out])
    np.testing.assert_array_equal(out, np.arange(32))


def test_dynamic_shared_memory_through_a_view(run_threads):
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    body = """
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %from = arith.constant 128 : index
      %tile = memref.view %bytes[%from][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<32xf32, #gpu.address_space<workgroup>>
      %v = memref.load %in0[%t] : memref<32xf32>
      memref.store %v, %tile[%t] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c31 = arith.constant 31 : index
      %other = arith.subi %c31, %t : index
      %r = memref.load %tile[%other] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %r, %out0[%t] : memref<32xf32>"""
    run_threads(body, [x], [out])
    np.testing.assert_array_equal(out, x[::-1])


def test_shuffle_modes(run_threads):
    out = np.zeros((4, 32), np.int32)
    valid = np.zeros((4, 32), bool)
    body = """
      %v = arith.index_cast %t : index to i32
      %three = arith.constant 3 : i32
      %eight = arith.constant 8 : i32"""
    for position, mode in enumerate(("xor", "up", "down", "idx")):
        body += f"""
          %s{position}, %p{position} = gpu.shuffle {mode} %v, %three, %eight : i32
          memref.store %s{position}, %out0[%c{position}, %t] : memref<4x32xi32>
          memref.store %p{position}, %out1[%c{position}, %t] : memref<4x32xi1>"""
    run_threads(body, [], [out, valid])
    lane = np.arange(32)
    segment, within = lane // 8 * 8, lane % 8
    np.testing.assert_array_equal(out[0], lane ^ 3)
    np.testing.assert_array_equal(out[1], np.where(within >= 3, lane - 3, lane))
    np.testing.assert_array_equal(out[2], np.where(within < 5, lane + 3, lane))
    np.testing.assert_array_equal(out[3], segment + 3)
    np.testing.assert_array_equal(valid, np.stack([within >= 0, within >= 3, within < 5, within >= 0]))


def test_shared_globals_of_the_gpu_module():
    shared = f"memref<32xf32, {SHARED}>"
    module = parse(f"""
      gpu.module @k {{
        memref.global "private" @tile : {shared} {{alignment = 16 : i64}}
        gpu.func @k(%x: memref<2x32xf32> {{fuse.align = 16 : i64}}, %y: memref<2x32xf32>) kernel
            attributes {{known_block_size = array<i32: 8, 1, 1>, fuse.grid = affine_map<() -> (2)>}} {{
          %c4 = arith.constant 4 : index
          %t = gpu.thread_id x
          %b = gpu.block_id x
          %tile = memref.get_global @tile : {shared}
          %same = memref.get_global @tile : {shared}
          %i = arith.muli %t, %c4 : index
          %v = vector.load %x[%b, %i] {{alignment = 16 : i64}} : memref<2x32xf32>, vector<4xf32>
          vector.store %v, %tile[%i] {{alignment = 16 : i64}} : {shared}, vector<4xf32>
          gpu.barrier
          %c7 = arith.constant 7 : index
          %other = arith.subi %c7, %t : index
          %j = arith.muli %other, %c4 : index
          %w = vector.load %same[%j] {{alignment = 16 : i64}} : {shared}, vector<4xf32>
          vector.store %w, %y[%b, %i] {{alignment = 16 : i64}} : memref<2x32xf32>, vector<4xf32>
          memref.dealloc %tile : {shared}
          gpu.return
        }}
      }}""")
    x, y = np.arange(64, dtype=np.float32).reshape(2, 32), np.zeros((2, 32), np.float32)
    interpreter.run_kernel(module, "k", [x], [y], order="random")
    np.testing.assert_array_equal(y, x.reshape(2, 8, 4)[:, ::-1].reshape(2, 32))

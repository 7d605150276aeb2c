"""Ops on a thread's vectors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernels import memref_type

X = np.arange(8, dtype=np.float32) + 1


def apply(run_threads, body: str, result: np.ndarray, source: np.ndarray = X) -> np.ndarray:
    """Runs ops from `%x`, the source as a vector, to `%r`, a vector of the result's shape, in one thread."""
    vector = memref_type(source).replace("memref", "vector")
    out_vector = memref_type(result).replace("memref", "vector")
    indices = ", ".join(["%c0"] * result.ndim)
    start = ", ".join(["%c0"] * source.ndim)
    text = f"""
      %x = vector.load %in0[{start}] : {memref_type(source)}, {vector}
      {body}
      vector.store %r, %out0[{indices}] : {memref_type(result)}, {out_vector}"""
    run_threads(text, [source], [result], threads=1)
    return result


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%e = vector.extract %x[2] : f32 from vector<8xf32>\n%r = vector.broadcast %e : f32 to vector<2xf32>", [3, 3]),
        ("%e = vector.extract %x[%c4] : f32 from vector<8xf32>\n%r = vector.broadcast %e : f32 to vector<1xf32>", [5]),
        ("%e = vector.extract %x[0] : f32 from vector<8xf32>\n%r = vector.insert %e, %x [7] : f32 into vector<8xf32>",
         [1, 2, 3, 4, 5, 6, 7, 1]),
        ("%e = vector.extract %x[0] : f32 from vector<8xf32>\n%r = vector.insert %e, %x [%c3] : f32 into vector<8xf32>",
         [1, 2, 3, 1, 5, 6, 7, 8]),
        ("%e:8 = vector.to_elements %x : vector<8xf32>\n%r = vector.from_elements %e#7, %e#0 : vector<2xf32>", [8, 1]),
        ("%r = vector.interleave %x, %x : vector<8xf32> -> vector<16xf32>", np.repeat(X, 2)),
        ("%r, %o = vector.deinterleave %x : vector<8xf32> -> vector<4xf32>", [1, 3, 5, 7]),
        ("%r = vector.shuffle %x, %x [0, 9, 7] : vector<8xf32>, vector<8xf32>", [1, 2, 8]),
        ("%r = vector.extract_strided_slice %x {offsets = [2], sizes = [3], strides = [1]}"
         " : vector<8xf32> to vector<3xf32>", [3, 4, 5]),
        ("%h = vector.extract_strided_slice %x {offsets = [4], sizes = [2], strides = [1]}"
         " : vector<8xf32> to vector<2xf32>\n"
         "%r = vector.insert_strided_slice %h, %x {offsets = [1], strides = [1]} : vector<2xf32> into vector<8xf32>",
         [1, 5, 6, 4, 5, 6, 7, 8]),
        ("%s = vector.shape_cast %x : vector<8xf32> to vector<2x4xf32>\n"
         "%t2 = vector.transpose %s, [1, 0] : vector<2x4xf32> to vector<4x2xf32>\n"
         "%r = vector.shape_cast %t2 : vector<4x2xf32> to vector<8xf32>", [1, 5, 2, 6, 3, 7, 4, 8]),
        ("%b2 = vector.bitcast %x : vector<8xf32> to vector<16xi16>\n"
         "%r = vector.bitcast %b2 : vector<16xi16> to vector<8xf32>", X),
        ("%s = vector.reduction <add>, %x : vector<8xf32> into f32\n"
         "%r = vector.broadcast %s : f32 to vector<1xf32>", [36]),
        ("%z = arith.constant 100.0 : f32\n%s = vector.reduction <maximumf>, %x, %z : vector<8xf32> into f32\n"
         "%r = vector.broadcast %s : f32 to vector<1xf32>", [100]),
        ("%m = vector.create_mask %c3 : vector<8xi1>\n%z = arith.constant dense<0.0> : vector<8xf32>\n"
         "%r = arith.select %m, %x, %z : vector<8xi1>, vector<8xf32>", [1, 2, 3, 0, 0, 0, 0, 0]),
        ("%m = vector.constant_mask [2] : vector<8xi1>\n%z = arith.constant dense<9.0> : vector<8xf32>\n"
         "%r = vector.maskedload %in0[%c0], %m, %z : memref<8xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>",
         [1, 2, 9, 9, 9, 9, 9, 9]),
        ("%i = vector.step : vector<8xindex>\n%j = arith.index_cast %i : vector<8xindex> to vector<8xi32>\n"
         "%r = arith.sitofp %j : vector<8xi32> to vector<8xf32>", np.arange(8)),
        ("%r = vector.fma %x, %x, %x : vector<8xf32>", X * X + X),
        ("%m = vector.shape_cast %x : vector<8xf32> to vector<2x4xf32>\n"
         "%z = arith.constant dense<1.0> : vector<2xf32>\n"
         "%r = vector.multi_reduction <mul>, %m, %z [1] : vector<2x4xf32> to vector<2xf32>", [24, 1680]),
        ("%z = arith.constant dense<1.0> : vector<2xf32>\n"
         "%r = \"fuse.thread_reduce\"(%x, %z) {dims = array<i64: 0>, kind = #vector.kind<add>,"
         " neighbours = array<i64: 2>} : (vector<8xf32>, vector<2xf32>) -> vector<2xf32>",
         [1 + 1 + 2 + 5 + 6, 1 + 3 + 4 + 7 + 8]),
    ],
)  # fmt: skip
def test_one_thread(run_threads, body, expected):
    expected = np.asarray(expected, np.float32)
    np.testing.assert_array_equal(apply(run_threads, body, np.zeros_like(expected)), expected)


def test_reduction_adds_in_index_order(run_threads):
    """(1e8 + 1) - 1e8 is 0 in f32; any other order gives 1."""
    body = "%s = vector.reduction <add>, %x : vector<3xf32> into f32\n%r = vector.broadcast %s : f32 to vector<1xf32>"
    source = np.array([1e8, 1, -1e8], np.float32)
    assert apply(run_threads, body, np.zeros(1, np.float32), source)[0] == 0


def test_masked_store_writes_only_where_asked(run_threads):
    out = np.full(8, -1, np.float32)
    body = """
      %m = vector.create_mask %c3 : vector<8xi1>
      %v = vector.load %in0[%c0] : memref<8xf32>, vector<8xf32>
      vector.maskedstore %out0[%c0], %m, %v : memref<8xf32>, vector<8xi1>, vector<8xf32>"""
    run_threads(body, [X], [out], threads=1)
    np.testing.assert_array_equal(out, [1, 2, 3, -1, -1, -1, -1, -1])


def test_positions_that_differ_by_thread(run_threads):
    out = np.zeros(8, np.float32)
    body = """
      %v = vector.load %in0[%c0] : memref<8xf32>, vector<8xf32>
      %e = vector.extract %v[%t] : f32 from vector<8xf32>
      %zero = arith.constant dense<0.0> : vector<8xf32>
      %w = vector.insert %e, %zero [%t] : f32 into vector<8xf32>
      %s = vector.reduction <add>, %w : vector<8xf32> into f32
      memref.store %s, %out0[%t] : memref<8xf32>"""
    run_threads(body, [X], [out], threads=8)
    np.testing.assert_array_equal(out, X)


def test_contract_accumulates_in_the_accumulators_type(run_threads):
    a = np.full((4, 8), 200, np.float16)
    out = np.ones((4, 4), np.float32)
    body = """
      %zero = arith.constant dense<1.0> : vector<4x4xf32>
      %a = vector.load %in0[%c0, %c0] : memref<4x8xf16>, vector<4x8xf16>
      %r = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                             affine_map<(m, n, k) -> (m, n)>],
                            iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
             %a, %a, %zero : vector<4x8xf16>, vector<4x8xf16> into vector<4x4xf32>
      vector.store %r, %out0[%c0, %c0] : memref<4x4xf32>, vector<4x4xf32>"""
    run_threads(body, [a], [out], threads=1)
    np.testing.assert_array_equal(out, np.full((4, 4), 8 * 200.0 * 200 + 1))


def test_views_of_memrefs(run_threads):
    x, out = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros(4, np.float32)
    body = """
      %row = memref.subview %in0[%t, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
      %p = memref.load %row[%c1] : memref<6xf32, strided<[1], offset: ?>>
      %flat = memref.collapse_shape %in0 [[0, 1]] : memref<4x6xf32> into memref<24xf32>
      %q = memref.load %flat[%t] : memref<24xf32>
      %cube = memref.expand_shape %in0 [[0], [1, 2]] output_shape [4, 2, 3] : memref<4x6xf32> into memref<4x2x3xf32>
      %s = memref.load %cube[%t, %c1, %c2] : memref<4x2x3xf32>
      %re = memref.reinterpret_cast %in0 to offset: [1], sizes: [4], strides: [6] : memref<4x6xf32>
        to memref<4xf32, strided<[6], offset: 1>>
      %u = memref.load %re[%t] : memref<4xf32, strided<[6], offset: 1>>
      %d = memref.dim %cube, %c2 : memref<4x2x3xf32>
      %di = arith.index_cast %d : index to i32
      %df = arith.sitofp %di : i32 to f32
      %a1 = arith.addf %p, %q : f32
      %a2 = arith.addf %a1, %s : f32
      %a3 = arith.addf %a2, %u : f32
      %a4 = arith.addf %a3, %df : f32
      %tr = memref.transpose %in0 (i, j) -> (j, i) : memref<4x6xf32> to memref<6x4xf32, strided<[1, 6]>>
      %v = memref.load %tr[%c2, %t] : memref<6x4xf32, strided<[1, 6]>>
      %a5 = arith.addf %a4, %v : f32
      memref.store %a5, %out0[%t] : memref<4xf32>"""
    run_threads(body, [x], [out], threads=4)
    lane = np.arange(4)
    np.testing.assert_array_equal(out, x[lane, 1] + x.ravel()[:4] + x[lane, 5] + x[lane, 1] + 3 + x[lane, 2])


def test_poison_shows_when_it_matters(run_threads):
    out = np.zeros(2, np.float32)
    body = """
      %p = ub.poison : vector<2xf32>
      %one = arith.constant 1.0 : f32
      %v = vector.insert %one, %p [0] : f32 into vector<2xf32>
      vector.store %v, %out0[%c0] : memref<2xf32>, vector<2xf32>"""
    run_threads(body, [], [out], threads=1)
    np.testing.assert_array_equal(out, [1, np.nan])


def test_ops_that_only_change_a_type_or_an_assumption(run_threads):
    out = np.zeros(8, np.float32)
    body = """
      %any = memref.cast %in0 : memref<8xf32> to memref<?xf32>
      %aligned = memref.assume_alignment %any, 16 : memref<?xf32>
      %plain = memref.memory_space_cast %aligned : memref<?xf32> to memref<?xf32, 1>
      %v = memref.load %plain[%t] : memref<?xf32, 1>
      %p = "fuse.optimization_barrier"(%v, %v) : (f32, f32) -> f32
      memref.store %p, %out0[%t] : memref<8xf32>"""
    run_threads(body, [X], [out], threads=8)
    np.testing.assert_array_equal(out, X)

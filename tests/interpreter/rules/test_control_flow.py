"""`scf` where threads agree and where they do not."""

from __future__ import annotations

import numpy as np


def test_threads_take_different_branches(run_threads):
    out = np.zeros(32, np.float32)
    body = """
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %low = arith.cmpi ult, %t, %c8 : index
      %v = scf.if %low -> f32 { scf.yield %one : f32 } else { scf.yield %two : f32 }
      memref.store %v, %out0[%t] : memref<32xf32>"""
    run_threads(body, [], [out])
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 8, 1, 2))


def test_nested_divergence_stores_only_for_the_active(run_threads):
    out = np.full(32, -1, np.int64)
    body = """
      %v = arith.index_cast %t : index to i64
      %low = arith.cmpi ult, %t, %c8 : index
      scf.if %low {
        %even = arith.remui %t, %c2 : index
        %is = arith.cmpi eq, %even, %c0 : index
        scf.if %is { memref.store %v, %out0[%t] : memref<32xi64> }
      }"""
    run_threads(body, [], [out])
    lane = np.arange(32)
    np.testing.assert_array_equal(out, np.where((lane < 8) & (lane % 2 == 0), lane, -1))


def test_each_thread_loops_as_often_as_it_wants(run_threads):
    out = np.zeros(32, np.int64)
    body = """
      %zero = arith.constant 0 : i64
      %sum = scf.for %i = %c0 to %t step %c1 iter_args(%acc = %zero) -> i64 {
        %k = arith.index_cast %i : index to i64
        %next = arith.addi %acc, %k : i64
        scf.yield %next : i64
      }
      memref.store %sum, %out0[%t] : memref<32xi64>"""
    run_threads(body, [], [out])
    lane = np.arange(32)
    np.testing.assert_array_equal(out, lane * (lane - 1) // 2)


def test_loop_carried_values_swap(run_threads):
    out = np.zeros((32, 2), np.float32)
    body = """
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %one, %b2 = %two) -> (f32, f32) {
        scf.yield %b2, %a : f32, f32
      }
      memref.store %r#0, %out0[%t, %c0] : memref<32x2xf32>
      memref.store %r#1, %out0[%t, %c1] : memref<32x2xf32>"""
    run_threads(body, [], [out])
    np.testing.assert_array_equal(out, np.tile([2, 1], (32, 1)))


def test_while_ends_thread_by_thread(run_threads):
    """Collatz steps to reach 1."""
    out = np.zeros(32, np.int64)
    body = """
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %three = arith.constant 3 : i64
      %v = arith.index_cast %t : index to i64
      %start = arith.addi %v, %one : i64
      %r:2 = scf.while (%n = %start, %count = %zero) : (i64, i64) -> (i64, i64) {
        %go = arith.cmpi ne, %n, %one : i64
        scf.condition(%go) %n, %count : i64, i64
      } do {
      ^bb0(%n: i64, %count: i64):
        %odd = arith.andi %n, %one : i64
        %isodd = arith.cmpi eq, %odd, %one : i64
        %triple = arith.muli %n, %three : i64
        %up = arith.addi %triple, %one : i64
        %down = arith.divsi %n, %two : i64
        %next = arith.select %isodd, %up, %down : i64
        %more = arith.addi %count, %one : i64
        scf.yield %next, %more : i64, i64
      }
      memref.store %r#1, %out0[%t] : memref<32xi64>"""
    run_threads(body, [], [out])

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    np.testing.assert_array_equal(out, [steps(n) for n in range(1, 33)])


def test_a_loop_that_some_threads_skip_still_gives_them_their_initial_value(run_threads):
    out = np.zeros(32, np.float32)
    body = """
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %start = arith.divui %t, %c8 : index
      %v = scf.for %i = %start to %c2 step %c1 iter_args(%acc = %one) -> f32 {
        %next = arith.mulf %acc, %two : f32
        scf.yield %next : f32
      }
      memref.store %v, %out0[%t] : memref<32xf32>"""
    run_threads(body, [], [out])
    np.testing.assert_array_equal(out, [4] * 8 + [2] * 8 + [1] * 16)

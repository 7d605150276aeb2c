"""`memref.atomic_rmw`: values, what it may run beside, and what it may not."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.errors import InterpreterError
from tests.support.kernels import SHARED

COUNT = f"memref<4xi32, {SHARED}>"
TALLY = f"""
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %bin = arith.remui %t, %c4 : index
  %few = arith.cmpi ult, %t, %c4 : index
  scf.if %few {{{{
    memref.store %zero, %s[%t] : {COUNT}
  }}}}
  {{before}}
  %old = memref.atomic_rmw addi %one, %s[%bin] : (i32, {COUNT}) -> i32
  memref.store %old, %out0[%t] : memref<64xi32>
  {{after}}
  scf.if %few {{{{
    %n = memref.load %s[%t] : {COUNT}
    memref.store %n, %out1[%t] : memref<4xi32>
  }}}}"""
WORKGROUP = f"%s : {COUNT}"


def outputs() -> list[np.ndarray]:
    return [np.full(64, -1, np.int32), np.full(4, -1, np.int32)]


def test_every_update_counts(run_threads):
    old, counts = outputs()
    body = TALLY.format(before="gpu.barrier", after="gpu.barrier")
    run_threads(body, [], [old, counts], threads=64, workgroup=WORKGROUP)
    np.testing.assert_array_equal(counts, [16] * 4)
    np.testing.assert_array_equal(np.sort(old[::4]), np.arange(16))


def test_updates_race_with_plain_accesses(run_threads):
    for before, after, what in (
        ("", "gpu.barrier", r"memref.atomic_rmw: shared-memory race with a write"),
        ("gpu.barrier", "", r"memref.load: shared-memory race with an atomic update"),
    ):
        body = TALLY.format(before=before, after=after)
        with pytest.raises(InterpreterError, match=what):
            run_threads(body, [], outputs(), threads=64, workgroup=WORKGROUP)


def test_unwritten_memory_is_not_updated(run_threads):
    body = TALLY.format(before="gpu.barrier", after="gpu.barrier").replace(
        "memref.store %zero", "// memref.store %zero"
    )
    with pytest.raises(InterpreterError, match="read of memory that was never written"):
        run_threads(body, [], outputs(), threads=64, workgroup=WORKGROUP)


@pytest.mark.parametrize(
    ("kind", "type_", "values", "expected"),
    [
        ("addf", "f32", [0.5, 2.0, -1.0], 1.5),
        ("mulf", "f32", [0.5, 2.0, 3.0], 3.0),
        ("maximumf", "f32", [0.5, 2.0, -1.0], 2.0),
        ("minimumf", "f32", [0.5, 2.0, -1.0], -1.0),
        ("assign", "f32", [0.5, 2.0, 4.0], 4.0),
        ("maxs", "i32", [-3, 2, 1], 2),
        ("minu", "i32", [-3, 2, 1], 1),
        ("ori", "i32", [1, 2, 8], 11),
        ("andi", "i32", [7, 3, 2], 2),
        ("xori", "i32", [1, 3, 8], 10),
    ],
)
def test_kinds(run_threads, kind, type_, values, expected):
    x = np.array(values, np.float32 if type_ == "f32" else np.int32)
    out = np.zeros(1, x.dtype)
    memory = f"memref<1x{type_}, {SHARED}>"
    body = f"""
      %first = arith.cmpi eq, %t, %c0 : index
      %v = memref.load %in0[%t] : memref<3x{type_}>
      scf.if %first {{
        memref.store %v, %s[%c0] : {memory}
      }}
      gpu.barrier
      %rest = arith.cmpi ne, %t, %c0 : index
      scf.if %rest {{
        %old = memref.atomic_rmw {kind} %v, %s[%c0] : ({type_}, {memory}) -> {type_}
      }}
      gpu.barrier
      scf.if %first {{
        %r = memref.load %s[%c0] : {memory}
        memref.store %r, %out0[%c0] : memref<1x{type_}>
      }}"""
    run_threads(body, [x], [out], threads=3, workgroup=f"%s : {memory}")
    assert out[0] == expected

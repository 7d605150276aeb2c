"""`fuse.scatter` and `fuse.scattered`: positions, elements that are left out, and loads, which are errors."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.compiler.context import make_context
from mlirfuse.errors import InterpreterError

ATTRIBUTES = """{basis = array<i64: 2, 4, 2>, ranks = array<i64: 2, 1>,
    map = affine_map<(a, h, c) -> (h * 2 + a - 1, c)>}"""


TENSOR_ATTRIBUTES = ATTRIBUTES.replace("{basis", "{sources = array<i64>, basis")


def test_tensor() -> None:
    text = f"""
    func.func @f(%x: tensor<8x2xf32>) -> tensor<6x2xf32> {{
      %0 = "fuse.scatter"(%x) {TENSOR_ATTRIBUTES} : (tensor<8x2xf32>) -> tensor<6x2xf32>
      return %0 : tensor<6x2xf32>
    }}"""
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    with make_context(), ir.Location.unknown():
        (found,) = interpreter.run(ir.Module.parse(text), "f", [x])
    assert (found == x.reshape(2, 4, 2).transpose(1, 0, 2).reshape(8, 2)[1:7]).all()


TURNED = "memref<2x8xf32, strided<[1, 2]>>"
VIEW = f"""%v = "fuse.scattered"(%out0) {ATTRIBUTES} : (memref<6x2xf32>) -> memref<8x2xf32, strided<[2, 1]>>"""


def test_buffer(run_threads) -> None:
    x, found = np.arange(16, dtype=np.float32).reshape(8, 2), np.zeros((6, 2), np.float32)
    text = f"""
      {VIEW}
      %r = vector.load %in0[%t, %c0] : memref<8x2xf32>, vector<2xf32>
      %turned = memref.transpose %v (i, j) -> (j, i) : memref<8x2xf32, strided<[2, 1]>> to {TURNED}
      %e = vector.extract %r[1] : f32 from vector<2xf32>
      vector.store %r, %v[%t, %c0] {{alignment = 8}} : memref<8x2xf32, strided<[2, 1]>>, vector<2xf32>
      memref.store %e, %turned[%c1, %t] : {TURNED}"""
    run_threads(text, [x], [found], threads=8)
    assert (found == x.reshape(2, 4, 2).transpose(1, 0, 2).reshape(8, 2)[1:7]).all()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%e = memref.load %v[%t, %c0] : memref<8x2xf32, strided<[2, 1]>>", "load from view of"),
        (
            "%z = arith.constant 0.0 : f32\nmemref.store %z, %v[%c8, %c0] : memref<8x2xf32, strided<[2, 1]>>",
            "out-of-bounds access",
        ),
    ],
)
def test_errors(run_threads, body: str, error: str) -> None:
    x, found = np.zeros((8, 2), np.float32), np.zeros((6, 2), np.float32)
    with pytest.raises(InterpreterError, match=error):
        run_threads(f"{VIEW}\n{body}", [x], [found], threads=1)

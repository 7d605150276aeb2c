"""linalg on tensors: indexing maps, reduction bodies, reshapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import ArgumentError, InterpreterError
from mlirfuse.interpreter.rules import linalg_ops
from tests.support.kernels import parse

MAPS = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, 0)>
#none = affine_map<(d0, d1) -> ()>
"""


def generic(maps: str, iterators: str, ins: str, outs: str, block: str, body: str, result: str) -> str:
    kinds = ", ".join(f'"{kind}"' for kind in iterators.split())
    return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins}) outs({outs}) {{
    ^bb0({block}):
      {body}
    }} -> {result}"""


def test_broadcasts_through_maps():
    op = generic(
        "#id, #col, #keep, #none, #id",
        "parallel parallel",
        "%x, %w, %k, %s : tensor<?x8xf32>, tensor<8xf32>, tensor<?x1xf32>, f32",
        "%e : tensor<?x8xf32>",
        "%a: f32, %b: f32, %c: f32, %d: f32, %out: f32",
        """%p = arith.mulf %a, %b : f32
           %q = arith.addf %p, %c : f32
           %r = arith.subf %q, %d : f32
           linalg.yield %r : f32""",
        "tensor<?x8xf32>",
    )
    module = parse(
        f"""{MAPS}
        func.func @f(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %k: tensor<?x1xf32>, %s: f32) -> tensor<?x8xf32> {{
          %c0 = arith.constant 0 : index
          %m = tensor.dim %x, %c0 : tensor<?x8xf32>
          %e = tensor.empty(%m) : tensor<?x8xf32>
          %0 = {op}
          return %0 : tensor<?x8xf32>
        }}"""
    )
    rng = np.random.default_rng(0)
    x, w, k = rng.random((3, 8), np.float32), rng.random(8, np.float32), rng.random((3, 1), np.float32)
    (y,) = interpreter.run(module, "f", [x, w, k, 0.5])
    np.testing.assert_array_equal(y, x * w + k - np.float32(0.5))


def reduction(op: str, init: str, dtype: str = "f32") -> str:
    body = f"%v = {op} %acc, %a : {dtype}\nlinalg.yield %v : {dtype}"
    ins, outs, block = f"%x : tensor<?x?x{dtype}>", f"%f : tensor<?x{dtype}>", f"%a: {dtype}, %acc: {dtype}"
    reduced = generic("#id, #row", "parallel reduction", ins, outs, block, body, f"tensor<?x{dtype}>")
    return f"""{MAPS}
      func.func @f(%x: tensor<?x?x{dtype}>) -> tensor<?x{dtype}> {{
        %c0 = arith.constant 0 : index
        %init = arith.constant {init} : {dtype}
        %m = tensor.dim %x, %c0 : tensor<?x?x{dtype}>
        %e = tensor.empty(%m) : tensor<?x{dtype}>
        %f = linalg.fill ins(%init : {dtype}) outs(%e : tensor<?x{dtype}>) -> tensor<?x{dtype}>
        %0 = {reduced}
        return %0 : tensor<?x{dtype}>
      }}"""


@pytest.mark.parametrize("at_once", [1 << 24, 1])
@pytest.mark.parametrize(
    ("op", "init", "reference"),
    [("arith.addf", "1.0", lambda x: 1 + x.sum(1)), ("arith.maximumf", "0xFF800000", lambda x: x.max(1)),
     ("arith.mulf", "1.0", lambda x: x.prod(1))],
)  # fmt: skip
def test_reductions_at_once_and_looped(monkeypatch, op, init, reference, at_once):
    monkeypatch.setattr(linalg_ops, "AT_ONCE", at_once)
    x = np.random.default_rng(0).random((5, 7), np.float32)
    (y,) = interpreter.run(parse(reduction(op, init)), "f", [x])
    np.testing.assert_allclose(y, reference(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 7), (5, 0)])
def test_empty_extents(shape):
    (y,) = interpreter.run(parse(reduction("arith.addf", "1.0")), "f", [np.zeros(shape, np.float32)])
    np.testing.assert_array_equal(y, np.ones(shape[0], np.float32))


def test_maximumf_keeps_nan_and_maxnumf_drops_it():
    x = np.array([[1, np.nan, 2]], np.float32)
    assert np.isnan(interpreter.run(parse(reduction("arith.maximumf", "0.0")), "f", [x])[0][0])
    assert interpreter.run(parse(reduction("arith.maxnumf", "0.0")), "f", [x])[0][0] == 2


def test_bfloat16_sums_round_in_bfloat16():
    x = np.full((1, 300), 1, ml_dtypes.bfloat16)
    (y,) = interpreter.run(parse(reduction("arith.addf", "0.0", "bf16")), "f", [x])
    assert y.dtype == ml_dtypes.bfloat16
    assert float(y[0]) == 256.0, "bf16 has 8 bits: 256 + 1 is 256"


def test_a_body_that_is_no_simple_reduction_is_looped():
    """Argmax: the value and the index travel together."""
    op = generic(
        "#id, #row, #row",
        "parallel reduction",
        "%x : tensor<3x5xf32>",
        "%v, %i : tensor<3xf32>, tensor<3xi64>",
        "%a: f32, %best: f32, %at: i64",
        """%k = linalg.index 1 : index
           %n = arith.index_cast %k : index to i64
           %gt = arith.cmpf ogt, %a, %best : f32
           %b2 = arith.select %gt, %a, %best : f32
           %at2 = arith.select %gt, %n, %at : i64
           linalg.yield %b2, %at2 : f32, i64""",
        "(tensor<3xf32>, tensor<3xi64>)",
    )
    module = parse(
        f"""{MAPS}
        func.func @f(%x: tensor<3x5xf32>, %v: tensor<3xf32>, %i: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xi64>) {{
          %0:2 = {op}
          return %0#0, %0#1 : tensor<3xf32>, tensor<3xi64>
        }}"""
    )
    x = np.random.default_rng(1).random((3, 5), np.float32)
    best, at = interpreter.run(module, "f", [x, np.full(3, -1, np.float32), np.full(3, -1, np.int64)])
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))


def test_a_window_map():
    module = parse("""
      #in = affine_map<(d0, d1) -> (d0 * 2 + d1)>
      #window = affine_map<(d0, d1) -> (d1)>
      #out = affine_map<(d0, d1) -> (d0)>
      func.func @f(%x: tensor<9xf32>, %w: tensor<3xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
        %0 = linalg.generic {indexing_maps = [#in, #window, #out], iterator_types = ["parallel", "reduction"]}
             ins(%x, %w : tensor<9xf32>, tensor<3xf32>) outs(%o : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %acc: f32):
          %p = arith.mulf %a, %b : f32
          %s = arith.addf %acc, %p : f32
          linalg.yield %s : f32
        } -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }""")
    x, w = np.arange(9, dtype=np.float32), np.array([1, 10, 100], np.float32)
    (y,) = interpreter.run(module, "f", [x, w, np.zeros(4, np.float32)])
    np.testing.assert_array_equal(y, [x[2 * i : 2 * i + 3] @ w for i in range(4)])


def test_reshape_transpose_moments():
    module = parse("""
      func.func @f(%x: tensor<?x6xf32>) -> (tensor<2x?x3xf32>, tensor<?xf32>, tensor<?xf32>) {
        %c0 = arith.constant 0 : index
        %m = tensor.dim %x, %c0 : tensor<?x6xf32>
        %3 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%m, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
        %e = tensor.empty(%m) : tensor<2x?x3xf32>
        %t = linalg.transpose ins(%3 : tensor<?x2x3xf32>) outs(%e : tensor<2x?x3xf32>) permutation = [1, 0, 2]
        %b = tensor.collapse_shape %3 [[0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
        %s, %q = "fuse.moments"(%b) {dims = array<i64: 1>} : (tensor<?x6xf32>) -> (tensor<?xf32>, tensor<?xf32>)
        return %t, %s, %q : tensor<2x?x3xf32>, tensor<?xf32>, tensor<?xf32>
      }""")
    x = np.random.default_rng(0).random((4, 6), np.float32)
    transposed, total, m2 = interpreter.run(module, "f", [x])
    np.testing.assert_array_equal(transposed, x.reshape(4, 2, 3).transpose(1, 0, 2))
    np.testing.assert_allclose(total, x.sum(1), rtol=1e-6)
    np.testing.assert_allclose(m2, x.var(1) * 6, rtol=1e-5)


def test_exp_sum_of_rows_with_infinities():
    module = parse("""
      func.func @f(%x: tensor<?x6xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
        %m, %s = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<?x6xf32>) -> (tensor<?xf32>, tensor<?xf32>)
        return %m, %s : tensor<?xf32>, tensor<?xf32>
      }""")
    x = np.random.default_rng(0).random((4, 6), np.float32)
    x[1, 2], x[2, :], x[3, 0] = -np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        maximum, total = interpreter.run(module, "f", [x])
        expected = np.exp(x - x.max(1, keepdims=True)).sum(1)
    np.testing.assert_array_equal(maximum, x.max(1))
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    assert np.isnan(total[2])
    assert np.isnan(total[3])


def test_sizes_that_do_not_match():
    op = generic(
        "#id, #id, #id",
        "parallel parallel",
        "%x, %z : tensor<?x?xf32>, tensor<?x?xf32>",
        "%x : tensor<?x?xf32>",
        "%a: f32, %b: f32, %o: f32",
        "linalg.yield %a : f32",
        "tensor<?x?xf32>",
    )
    module = parse(
        f"{MAPS}func.func @f(%x: tensor<?x?xf32>, %z: tensor<?x?xf32>) -> tensor<?x?xf32> {{ %0 = {op}\n"
        "return %0 : tensor<?x?xf32> }"
    )
    with pytest.raises(InterpreterError, match="sizes do not match: dimension d0 is 2 and 3"):
        interpreter.run(module, "f", [np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32)])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "takes 1 inputs, got 0"),
        ([np.zeros((2, 2), np.float16)], "expected dtype float32, got float16"),
        ([np.zeros(2, np.float32)], r"expected shape \(\?, \?\), got \(2,\)"),
        ([[1.0]], "expected a NumPy array"),
    ],
)
def test_inputs_that_do_not_fit(inputs, message):
    with pytest.raises(ArgumentError, match=message):
        interpreter.run(parse(reduction("arith.addf", "0.0")), "f", inputs)


def test_an_op_without_a_rule_is_named():
    module = parse("""
      func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }""")
    with pytest.raises(InterpreterError, match=r"no rule for op tosa.abs"):
        interpreter.run(module, "f", [np.zeros(4, np.float32)])


def test_a_function_that_does_not_exist():
    with pytest.raises(InterpreterError, match=r"no function @g\n.*functions: f"):
        interpreter.run(parse(reduction("arith.addf", "0.0")), "g", [])


def test_slices_and_elements():
    module = parse("""
      !row = tensor<?x6xf32>
      func.func @f(%x: tensor<4x6xf32>, %i: index)
          -> (tensor<3xf32>, tensor<4x6xf32>, tensor<2xf32>, !row, tensor<2x2xf32>) {
        %c1 = arith.constant 1 : index
        %s = tensor.extract_slice %x[%i, 1] [1, 3] [1, 2] : tensor<4x6xf32> to tensor<3xf32>
        %r = tensor.insert_slice %s into %x[0, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<4x6xf32>
        %a = tensor.extract %x[%i, %c1] : tensor<4x6xf32>
        %e = tensor.from_elements %a, %a : tensor<2xf32>
        %d = tensor.cast %x : tensor<4x6xf32> to !row
        %p = tensor.splat %a : tensor<2x2xf32>
        return %s, %r, %e, %d, %p : tensor<3xf32>, tensor<4x6xf32>, tensor<2xf32>, !row, tensor<2x2xf32>
      }""")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    piece, inserted, elements, cast, splat = interpreter.run(module, "f", [x, 2])
    np.testing.assert_array_equal(piece, x[2, 1::2])
    expected = x.copy()
    expected[0, :3] = x[2, 1::2]
    np.testing.assert_array_equal(inserted, expected)
    np.testing.assert_array_equal(elements, [x[2, 1]] * 2)
    np.testing.assert_array_equal(cast, x)
    np.testing.assert_array_equal(splat, np.full((2, 2), x[2, 1]))
    with pytest.raises(InterpreterError, match=r"tensor.extract_slice: out-of-bounds slice"):
        interpreter.run(module, "f", [x, 4])


def test_a_cast_to_a_shape_that_is_not_the_tensors():
    module = parse("""
      func.func @f(%x: tensor<?xf32>) -> tensor<4xf32> {
        %0 = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
        return %0 : tensor<4xf32>
      }""")
    with pytest.raises(InterpreterError, match=r"tensor.cast: a tensor of shape \(3,\) is not tensor<4xf32>"):
        interpreter.run(module, "f", [np.zeros(3, np.float32)])

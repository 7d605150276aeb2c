"""The host function as data."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.expressions import Constant, Symbol
from mlirfuse.compiler.host_program import Buffer, HostArgument, HostProgram, Launch, Reshape, Value
from mlirfuse.compiler.read_host import host_program
from mlirfuse.errors import ArgumentError, IRError
from mlirfuse.runtime.arrays.arrays import ArrayInfo, ScalarInfo
from mlirfuse.runtime.arrays.layout import Result, Strided, lay_out
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.dtypes import float16, float32, float64

PROGRAM = """
func.func @f(%x: tensor<?x64xf16> {fuse.name = "x"}, %w: tensor<64xf16> {fuse.name = "w"}, %s: f64)
    -> (tensor<?x8x8xf16>, tensor<?xf16>, tensor<?x64xf16>, tensor<?xf16>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %0:2 = call @f_0(%x, %w, %s) : (tensor<?x64xf16>, tensor<64xf16>, f64) -> (tensor<?x64xf16>, tensor<?xf32>)
  %1 = call @f_1(%0#1) : (tensor<?xf32>) -> tensor<?xf16>
  %e = tensor.expand_shape %0#0 [[0], [1, 2]] output_shape [%m, 8, 8] : tensor<?x64xf16> into tensor<?x8x8xf16>
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<?x64xf16> into tensor<?xf16>
  return %e, %f, %x, %1 : tensor<?x8x8xf16>, tensor<?xf16>, tensor<?x64xf16>, tensor<?xf16>
}
func.func private @f_0(tensor<?x64xf16>, tensor<64xf16>, f64) -> (tensor<?x64xf16>, tensor<?xf32>)
    attributes {fuse.launch = @f_0_kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>}
func.func private @f_1(tensor<?xf32>) -> tensor<?xf16>
    attributes {fuse.launch = @f_1_kernel, fuse.result_extents = array<i64: 0, 0>}
"""


def read(text: str) -> HostProgram:
    return host_program(parse_module(text, make_context()).operation)


def half(shape, strides=None, pointer=1 << 20, device=0) -> ArrayInfo:
    if strides is None:
        strides = tuple(64**i for i in reversed(range(len(shape))))
    return ArrayInfo(pointer, shape, strides, float16, device, "cupy")


ARGUMENTS = (half((6, 64)), half((64,)), ScalarInfo("float"))


def test_program():
    rows = Symbol(0)
    assert read(PROGRAM) == HostProgram(
        name="f",
        arguments=(
            HostArgument("x", float16, (None, 64)),
            HostArgument("w", float16, (64,)),
            HostArgument("arg2", float64, None),
        ),
        extents=((0, 0),),
        buffers=(Buffer(float16, (rows, Constant(64))), Buffer(float32, (rows,)), Buffer(float16, (rows,))),
        launches=(
            Launch("f_0_kernel", (Value("argument", 0), Value("argument", 1), Value("argument", 2)), (0, 1)),
            Launch("f_1_kernel", (Value("buffer", 1),), (2,)),
        ),
        results=(
            Value("buffer", 0, (Reshape((rows, Constant(8), Constant(8))),)),
            Value("argument", 0, read(PROGRAM).results[1].views),
            Value("argument", 0),
            Value("buffer", 2),
        ),
    )


def test_layout_of_a_call():
    layout = lay_out(read(PROGRAM), ARGUMENTS)
    assert layout.buffers == ((6, 64), (6,), (6,))
    assert layout.outputs == (0, 2)
    assert layout.intermediates == (1,)
    assert layout.results == (
        Result("buffer", 0, float16, (6, 8, 8), (64, 8, 1), 0, (0, 1, 2)),
        Result("argument", 0, float16, (384,), (1,), 0, None),
        Result("argument", 0, float16, (6, 64), (64, 1), 0, None),
        Result("buffer", 2, float16, (6,), (1,), 0, (0,)),
    )
    assert layout.strided(Value("argument", 0)) == Strided((6, 64), (64, 1))
    assert layout.strided(Value("buffer", 1)) == Strided((6,), (1,))


TRANSPOSED = """
func.func @transpose(%x: tensor<?x4xf32>) -> tensor<2x2x?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %wide = tensor.expand_shape %x [[0], [1, 2]] output_shape [%m, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32>
  %e = tensor.empty(%m) : tensor<2x?x2xf32>
  %0 = linalg.transpose ins(%wide : tensor<?x2x2xf32>) outs(%e : tensor<2x?x2xf32>) permutation = [1, 0, 2]
  %f = tensor.empty(%m) : tensor<2x2x?xf32>
  %1 = linalg.transpose ins(%0 : tensor<2x?x2xf32>) outs(%f : tensor<2x2x?xf32>) permutation = [0, 2, 1]
  return %1 : tensor<2x2x?xf32>
}
"""


def test_transposed_results_are_views():
    program = read(TRANSPOSED)
    assert program.launches == ()
    (result,) = lay_out(program, [ArrayInfo(0, (6, 4), (4, 1), float32, 0, "cupy")]).results
    assert (result.shape, result.strides, result.axes) == ((2, 2, 6), (2, 1, 4), None)


def test_a_transposed_view_is_reshaped_where_it_stays_a_view():
    split = """tensor.expand_shape %1 [[0, 1], [2], [3]] output_shape [1, 2, 2, %m]
      : tensor<2x2x?xf32> into tensor<1x2x2x?xf32>"""
    program = read(
        TRANSPOSED.replace("return %1 : tensor<2x2x?xf32>", f"%2 = {split}\n  return %2 : tensor<1x2x2x?xf32>").replace(
            "-> tensor<2x2x?xf32> {", "-> tensor<1x2x2x?xf32> {"
        )
    )
    (result,) = lay_out(program, [ArrayInfo(0, (6, 4), (4, 1), float32, 0, "cupy")]).results
    assert (result.shape, result.strides) == ((1, 2, 2, 6), (4, 2, 1, 4))


SLICED = """
#diagonal = affine_map<(d0) -> (d0, d0)>
#line = affine_map<(d0) -> (d0)>
func.func @slice(%x: tensor<?x8xf32>) -> (tensor<?x3xf32>, tensor<3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %last = arith.subi %n, %c1 : index
  %0 = tensor.extract_slice %x[%last, 1] [%n, 3] [-1, 2] : tensor<?x8xf32> to tensor<?x3xf32>
  %1 = tensor.extract_slice %x[1, 2] [3, 3] [1, 1] : tensor<?x8xf32> to tensor<3x3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %2 = linalg.generic {indexing_maps = [#diagonal, #line], iterator_types = ["parallel"]}
       ins(%1 : tensor<3x3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3xf32>
  return %0, %2 : tensor<?x3xf32>, tensor<3xf32>
}
"""


def test_slices_and_diagonals_are_views():
    program = read(SLICED)
    assert program.launches == ()
    rows, line = lay_out(program, [ArrayInfo(0, (6, 8), (8, 1), float32, 0, "cupy")]).results
    assert (rows.shape, rows.strides, rows.offset) == ((6, 3), (-8, 2), 41)
    assert (line.shape, line.strides, line.offset) == ((3,), (9,), 10)


def test_view_only_results_launch_nothing():
    program = read("""
    func.func @view(%x: tensor<?x4xf32>) -> tensor<?x2x2xf32> {
      %c0 = arith.constant 0 : index
      %m = tensor.dim %x, %c0 : tensor<?x4xf32>
      %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%m, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32>
      return %0 : tensor<?x2x2xf32>
    }""")
    assert program.launches == ()
    assert program.buffers == ()


def test_index_arithmetic():
    program = read("""
    func.func @split(%x: tensor<?xf32>) -> tensor<?x4xf32> {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %m = arith.divui %n, %c4 : index
      %0 = tensor.expand_shape %x [[0, 1]] output_shape [%m, 4] : tensor<?xf32> into tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }""")
    layout = lay_out(program, [ArrayInfo(0, (20,), (1,), float32, 0, "torch")])
    assert layout.results[0].shape == (5, 4)


def test_reshape_that_does_not_come_out_even():
    program = read("""
    func.func @split(%x: tensor<?xf32>) -> tensor<?x4xf32> {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %m = arith.divui %n, %c4 : index
      %0 = tensor.expand_shape %x [[0, 1]] output_shape [%m, 4] : tensor<?xf32> into tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }""")
    with pytest.raises(ArgumentError, match=r"cannot view shape \(21,\) as \(5, 4\)"):
        lay_out(program, [ArrayInfo(0, (21,), (1,), float32, 0, "torch")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (ARGUMENTS[:2], "takes 3 arguments, got 2"),
        ((half((6, 32)), *ARGUMENTS[1:]), r"x: expected shape \(\?, 64\), got \(6, 32\)"),
        ((half((64,)), *ARGUMENTS[1:]), r"x: expected shape"),
        ((ScalarInfo("float"), *ARGUMENTS[1:]), "x: expected an array"),
        ((*ARGUMENTS[:2], half((1,))), "arg2: expected a number"),
        ((ARGUMENTS[0], half((64,), device=1), ARGUMENTS[2]), r"devices \[0, 1\]"),
        (
            (ArrayInfo(0, (6, 64), (64, 1), float32, 0, "cupy"), *ARGUMENTS[1:]),
            "x: expected dtype float16, got float32",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        lay_out(read(PROGRAM), arguments)


def test_an_op_outside_the_contract():
    with pytest.raises(IRError, match=r"math\.exp is not an op of the host function"):
        read("func.func @f(%x: f32) -> f32 { %0 = math.exp %x : f32\n return %0 : f32 }")


def test_a_call_that_launches_nothing():
    with pytest.raises(IRError, match="g, which has no fuse.launch"):
        read("""
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
        func.func private @g(tensor<4xf32>) -> tensor<4xf32> attributes {fuse.kernel}""")


def test_no_host_function():
    with pytest.raises(IRError, match="expected one host function, found 0"):
        read("func.func private @g(tensor<4xf32>) -> tensor<4xf32> attributes {fuse.kernel}")


def explained(function):
    x = mf.TensorSpec((None, 64), mf.float32)
    return mf.fuse(function, target="sm_90a").lower(x).compile().explain().splitlines()


def test_views_are_explained():
    assert "0 kernels: the result is a view of x" in explained(lambda x: x.T)
    assert "0 kernels: result 0 is x, result 1 is a view of x" in explained(lambda x: (x, x[:, ::2]))
    assert "result 1 is a view of x" in explained(lambda x: (x * 2, x[:, ::2]))
    assert "0 kernels: no result has elements" in explained(lambda x: x[:, 5:5] * 2)

"""What a trace makes of a function's parameters, results, extents and lines."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest
from mlir import ir

from mlirfuse import builder as mf
from mlirfuse.builder import ScalarSpec, StaticSpec, TensorSpec, equal_extents, result_structure, trace
from mlirfuse.compiler.context import make_context
from mlirfuse.errors import ArgumentError, DTypeError, MlirFuseError, ShapeError, TraceError
from tests.support.harnesses.builder_harness import function_of, ops, run, traced

F32 = "float32"


def layer_norm(x, b0, b1, w, b):
    h = (x + b0 + b1).astype(F32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


def test_layer_norm() -> None:
    rng = np.random.default_rng(0)
    x, b0 = rng.normal(size=(2, 5, 37)).astype(np.float16)
    b1, w, b = rng.normal(size=(3, 37)).astype(np.float16)
    specs = [TensorSpec((None, 37), "float16")] * 2 + [TensorSpec(37, "float16")] * 3
    module = traced(layer_norm, *specs)
    h = (x + b0 + b1).astype(np.float64)
    exact = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5) * w + b
    actual = run(layer_norm, x, b0, b1, w, b, dynamic=())
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=1e-3, atol=1e-3)
    assert len(ops(module, "tensor.dim")) == 1


def test_argument_attributes() -> None:
    module = traced(
        lambda x, y, alpha, z: (x, y * alpha, z),
        TensorSpec((None, 8), "float16", align=8),
        TensorSpec((8, 8), "float32", strides=(1, None), name="weights"),
        ScalarSpec("float"),
        TensorSpec((2, 4, 8), "float32", strides=("packed", "negative", 0), name="z"),
    )
    function = function_of(module)
    attributes = [str(a) for a in function.arg_attrs]
    assert attributes == [
        '{fuse.align = 8 : i64, fuse.name = "x"}',
        '{fuse.align = 16 : i64, fuse.name = "weights", fuse.strides = [1, "?"]}',
        '{fuse.name = "alpha"}',
        '{fuse.align = 16 : i64, fuse.name = "z", fuse.strides = ["packed", "negative", 0]}',
    ]


@pytest.mark.parametrize(
    ("fn", "structure", "count"),
    [
        (lambda x: x + 1, "single", 1),
        (lambda x: (x + 1,), "tuple", 1),
        (lambda x: [x + 1, x], "list", 2),
    ],
)
def test_result_structure(fn, structure, count) -> None:
    module = traced(fn, TensorSpec(4, F32))
    assert result_structure(function_of(module)) == structure
    assert len(function_of(module).type.results) == count


def test_names() -> None:
    with make_context() as context:
        spec = TensorSpec(4, F32)
        for fn, specs, name in (
            (layer_norm, [spec] * 5, "layer_norm"),
            (lambda x: x, [spec], "lambda"),
            (functools.partial(layer_norm, b=1.0), [spec] * 4, "fused"),
        ):
            module = trace(fn, specs, context=context)
            assert function_of(module).name.value == name
        module = trace(layer_norm, [spec] * 5, context=context, name="k")
        assert function_of(module).name.value == "k"


def parameters(a, /, b, *rest, scale=2.0, **more):
    return a + b * scale + sum(rest) + sum(more.values())


def test_parameters() -> None:
    spec = TensorSpec(4, F32)
    by_order = traced(parameters, spec, spec, spec)
    assert [a["fuse.name"].value for a in function_of(by_order).arg_attrs] == ["a", "b", "rest_0"]
    with make_context() as context:
        by_name = trace(
            parameters, {"b": spec, "extra": spec, "a": spec, "scale": ScalarSpec("float")}, context=context
        )
        assert [a["fuse.name"].value for a in function_of(by_name).arg_attrs] == ["a", "b", "scale", "extra"]


def test_static_values_are_no_arguments() -> None:
    def reduce(x, axis, y, *, keepdims):
        return mf.sum(x, axis=axis, keepdims=keepdims) + y

    with make_context() as context:
        specs = {
            "x": TensorSpec((3, 4), F32),
            "axis": StaticSpec((0, 1)),
            "y": TensorSpec(1, F32),
            "keepdims": StaticSpec(True),
        }
        function = function_of(trace(reduce, specs, context=context))
        assert [str(t) for t in function.type.inputs] == ["tensor<3x4xf32>", "tensor<1xf32>"]
        assert [str(t) for t in function.type.results] == ["tensor<1x1xf32>"]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "missing a required argument: 'a'"),
        ([TensorSpec(4, F32)], "missing a required argument: 'b'"),
        ({"a": TensorSpec(4, F32), "c": TensorSpec(4, F32)}, "missing a required argument: 'b'"),
        ([TensorSpec(4, F32), np.ones(4)], "parameter 'b' got array"),
        ([TensorSpec(4, F32), 2.0], "which is no spec"),
    ],
)
def test_specs_that_do_not_fit(specs, message) -> None:
    with make_context() as context, pytest.raises(ArgumentError, match=message) as caught:
        trace(parameters, specs, context=context)
    assert "builder/test_trace.py:" in str(caught.value)


def test_bad_specs() -> None:
    for make in (
        lambda: TensorSpec((-1, 4), F32),
        lambda: TensorSpec((4.0,), F32),
        lambda: TensorSpec((True,), F32),
        lambda: TensorSpec(("",), F32),
        lambda: TensorSpec(4, F32, align=3),
        lambda: TensorSpec((4, 4), F32, strides=(1,)),
        lambda: TensorSpec((4, 4), F32, strides=(4, 1)),
        lambda: TensorSpec((4, 4), F32, strides=(-1, 1)),
        lambda: TensorSpec((4, 4), F32, strides=("reversed", 1)),
        lambda: ScalarSpec("complex"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentError):
            make()
    with pytest.raises(DTypeError, match="complex64"):
        TensorSpec(4, "complex64")
    assert TensorSpec([2, None], np.float16) == TensorSpec((2, None), "float16")


def test_equal_names_are_one_extent() -> None:
    module = traced(lambda x, y: x + y, TensorSpec(("m", 4), F32), TensorSpec(("m", 4), F32))
    assert len(ops(module, "tensor.dim")) == 1
    assert equal_extents(function_of(module)) == [[(0, 0), (1, 0)]]


def test_unnamed_extents_that_broadcast_are_assumed_equal() -> None:
    specs = [
        TensorSpec((None, 4), F32),
        TensorSpec((None, 4), F32),
        TensorSpec(("m", 4), F32),
        TensorSpec((None,), F32),
    ]
    module = traced(lambda a, b, c, d: ((a + b) * 2 + c, d), *specs)
    assert equal_extents(function_of(module)) == [[(0, 0), (1, 0), (2, 0)]]
    assert equal_extents(function_of(traced(lambda a, b: (a, b), *specs[:2]))) == []


def test_extents_with_different_names_do_not_broadcast() -> None:
    specs = TensorSpec(("m", 4), F32), TensorSpec(("n", 4), F32), TensorSpec((None, 4), F32)
    with pytest.raises(ShapeError, match=r"\(m, 4\) and \(n, 4\)"):
        traced(lambda x, y, z: x + y, *specs)
    with pytest.raises(ShapeError, match="do not broadcast"):
        traced(lambda x, y, z: (x + z) + (y + z), *specs)


def test_dynamic_with_static() -> None:
    x = TensorSpec((None, 4), F32)
    module = traced(lambda x, y: x + y, x, TensorSpec((1, 4), F32))
    assert "affine_map<(d0, d1) -> (0, d1)>" in str(module)
    with pytest.raises(mf.NeedsStatic) as caught:
        traced(lambda x, y: x + y, x, TensorSpec((8, 4), F32))
    assert (caught.value.symbol, caught.value.sources) == ("x.0", ((0, 0),))


@pytest.mark.parametrize(
    "use",
    [
        lambda n: int(n),
        lambda n: float(n),
        lambda n: range(n),
        lambda n: n + 1,
        lambda n: 1 / n,
        lambda n: n // 2,
        lambda n: n == 4,
        lambda n: n != 4,
        lambda n: n > 4,
        lambda n: bool(n),
    ],
)
def test_numbers_of_dynamic_extents(use) -> None:
    with pytest.raises(mf.NeedsStatic, match="'m'"):
        traced(lambda x: use(x.shape[0]) and x, TensorSpec(("m", 4), F32))


def test_extents_in_arithmetic_are_numbers_of_run_time() -> None:
    module = traced(lambda x: x / x.shape[0] + (1 / (x.shape[0] - 1)), TensorSpec(("m", 4), F32))
    assert len(ops(module, "tensor.dim")) == 1
    assert "arith.index_cast" in str(module)


def test_dynamic_extents_that_are_equal_compare_equal() -> None:
    def fn(x, y):
        assert x.shape == y.shape
        assert x.shape[0] * 2 // 2 == y.shape[0]
        assert hash(x.shape) == hash(y.shape)
        assert repr(x.shape[0] * 2) == "2*m"
        assert x.shape[1] == 4
        return x

    traced(fn, TensorSpec(("m", 4), F32), TensorSpec(("m", 4), F32))


def test_a_tensor_used_twice_is_one_value() -> None:
    module = traced(lambda x: (y := mf.exp(x)) + y * y, TensorSpec(4, F32))
    generics = ops(module, "linalg.generic")
    assert len(generics) == 3
    assert [len(g.operands) for g in generics] == [2, 2, 3]


def test_locations_are_the_users_lines() -> None:
    def fn(x):
        y = x + 1
        return mf.sum(y)

    module = traced(fn, TensorSpec(4, F32))
    first = fn.__code__.co_firstlineno
    for op, line, column in zip(ops(module, "linalg.generic"), (first + 1, first + 2), (13, 16), strict=True):
        assert str(op.location) == f'loc("fn"("{__file__}":{line}:{column}))'
    assert f'"{__file__}":{first}' in str(function_of(module).location)


CONTROL_FLOW = {
    "truth": lambda x: x if x.sum() > 0 else -x,
    "and": lambda x: x and x,
    "chain": lambda x: 0 < x < 1,
    "max": lambda x: max(x, x),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "index": lambda x: [1, 2][x],
    "range": lambda x: list(range(x)),
    "iter": lambda x: list(x),
    "unpack": lambda x: (lambda a, b: a)(*x),
    "len": lambda x: len(x),
    "array": lambda x: np.asarray(x),
    "in": lambda x: 1 in x,
    "axis": lambda x: mf.sum(x, axis=x),
}


@pytest.mark.parametrize("fn", CONTROL_FLOW.values(), ids=CONTROL_FLOW)
def test_control_flow_that_depends_on_data(fn) -> None:
    with pytest.raises(mf.ControlFlowError) as caught:
        traced(fn, TensorSpec(4, F32))
    assert f"builder/test_trace.py:{fn.__code__.co_firstlineno}" in str(caught.value)
    assert caught.value.hint


def test_runtime_scalars_have_no_data_either() -> None:
    with pytest.raises(mf.ControlFlowError, match=r"bind a flag by functools\.partial"):
        traced(lambda x, flag: x if flag else -x, TensorSpec(4, F32), ScalarSpec("bool"))
    with pytest.raises(mf.ControlFlowError, match=r"bind it by functools\.partial"):
        traced(lambda x, axis: mf.sum(x, axis=axis), TensorSpec(4, F32), ScalarSpec("int"))


def test_the_users_line_is_shown() -> None:
    def fn(x, y):
        return mf.exp(x) + y.reshape(3)

    with pytest.raises(ShapeError) as caught:
        traced(fn, TensorSpec(4, F32), TensorSpec(3, F32))
    lines = str(caught.value).splitlines()
    assert lines[0].endswith(
        f"builder/test_trace.py:{fn.__code__.co_firstlineno + 1}: add: shapes (4,) and (3,) do not broadcast"
    )
    assert lines[1] == "    return mf.exp(x) + y.reshape(3)"
    assert lines[2] == "           ^^^^^^^^^^^^^^^^^^^^^^^^"
    assert lines[3].startswith("  hint: dimension -1: 4 and 3")


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: 3.0, "returned 3.0"),
        (lambda x: None, "returned None"),
        (lambda x: (x, 1), "returned 1 as result 1"),
        (lambda x: {"y": x}, "returned {'y'"),
        (lambda x: ((x,), x), "as result 0"),
        (lambda x: (), "returned no tensors"),
        (lambda x: np.ones(3), "returned array"),
    ],
)
def test_results_that_are_no_tensors(fn, message) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        traced(fn, TensorSpec(4, F32))
    assert "builder/test_trace.py:" in str(caught.value)


def test_tensors_do_not_outlive_their_trace() -> None:
    kept = []
    traced(lambda x: kept.append(x) or x, TensorSpec(4, F32))
    for fn in (lambda x: kept[0] + 1, lambda x: kept[0] + x, lambda x: kept[0], lambda x: mf.sum(kept[0])):
        with pytest.raises(TraceError, match="trace"):
            traced(fn, TensorSpec(4, F32))


def test_an_error_of_the_user_passes_through() -> None:
    def fn(x):
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        traced(fn, TensorSpec(4, F32))


def test_every_error_is_mlirfuses_own() -> None:
    assert all(issubclass(e, MlirFuseError) for e in (mf.NeedsStatic, mf.ControlFlowError, mf.UnsupportedError))


def test_tracing_is_fast() -> None:
    specs = [TensorSpec((None, 4096), "float16")] * 2 + [TensorSpec(4096, "float16")] * 3
    context = make_context()

    def seconds() -> float:
        start = time.perf_counter()
        trace(layer_norm, specs, context=context)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(10)) < 15e-3  # 1.4 ms on the machine that this was written on


def test_a_context_may_be_used_again() -> None:
    context = make_context()
    texts = {str(trace(layer_norm, [TensorSpec((4, 8), "float16")] * 5, context=context)) for _ in range(2)}
    assert len(texts) == 1
    assert isinstance(context, ir.Context)
